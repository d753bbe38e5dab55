package server

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"felix.dev/felix/broker/egress"
	"felix.dev/felix/broker/seglog"
	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/wire"
)

// durable makes a stream of one shard on disk.
func (h *harness) durable(name string, change func(*stream.Config)) *stream.Stream {
	h.t.Helper()
	dir := h.t.TempDir()
	return h.add(name, 1, change, func(hooks stream.Hooks) (stream.Log, error) {
		l, _, err := seglog.Open(seglog.Config{
			Dir: dir, Fsync: seglog.FsyncInterval, Committed: hooks.Committed,
			OnRecover: hooks.OnRecover, RestoreState: hooks.RestoreState, SnapshotState: hooks.SnapshotState,
		})
		return stream.Segments(l), err
	})
}

// A large record takes memory of its own for each reader that gets it from the log, in
// another form, or from its middle: thousands of readers that do not read must not have
// it all at once, nor keep it from others.
func TestStalledReadersOfLargeRecords(t *testing.T) {
	const size, readers, bound = 2 << 20, 24, 8 << 20
	whole, plain := allFlags, allFlags&^wire.FlagEventOffsets
	for _, tt := range []struct {
		name  string
		tail  int64 // of the ring
		flags wire.Flags
		start wire.Start
		first uint64
	}{
		{"from the log", 64 << 10, whole, wire.Start{Kind: wire.StartEarliest}, 0},
		{"from the log in another form", 64 << 10, plain, wire.Start{Kind: wire.StartEarliest}, 0},
		{"from the log in the middle", 64 << 10, whole, wire.StartAt(1), 1},
		{"from the ring in another form", 64 << 20, plain, wire.Start{Kind: wire.StartEarliest}, 0},
		{"from the ring in the middle", 64 << 20, whole, wire.StartAt(1), 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := startWith(t, egress.Config{LargeBytes: 4 * bound}, nil)
			h.durable("large", func(c *stream.Config) { c.TailBytes = tt.tail })
			c := h.dial(func(c *quic.Config) { c.InitialStreamReceiveWindow, c.MaxStreamReceiveWindow = 4096, 4096 })
			k := c.authed()
			half := strings.Repeat("x", size/2)
			for i := range 2 {
				k.publish(publish(uint64(i), "large", half, half))
				if a := k.ack(); !a.OK {
					t.Fatalf("%+v", a)
				}
			}
			subscribe := func(c *client) *events {
				k := c.authedAs("good", tt.flags, allFeatures)
				k.send(&wire.Subscribe{TenantID: testTenant, Namespace: "default", Stream: "large", Start: &tt.start})
				if m := k.message(); m.MessageType() != "subscribed" {
					t.Fatalf("got %+v", m)
				}
				return c.acceptEvents()
			}
			before := heapInUse()
			for range readers {
				subscribe(c)
			}
			most := int64(0)
			for range 20 {
				most = max(most, heapInUse()-before)
				time.Sleep(10 * time.Millisecond)
			}
			if most > 2*bound {
				t.Errorf("%d stalled readers hold %d MiB", readers, most>>20)
			}
			other := h.dial()
			got := subscribe(other).read(4 - int(tt.first))
			if last := got[len(got)-1]; len(last.Payload) != size/2 {
				t.Errorf("the last record has %d bytes", len(last.Payload))
			}
			for _, gone := range []*client{c, other} {
				_ = gone.conn.CloseWithError(0, "")
			}
			eventually(t, "their memory is given back", func() bool { return heapInUse()-before < size })
		})
	}
}

func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what was pooled is gone with the second
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
