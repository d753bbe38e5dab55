package server

import (
	"context"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quic-go/quic-go"

	"felix.dev/felix/broker/wire"
)

// allocatedWhile is what the process allocates until do is through and nothing
// moves any more.
func allocatedWhile(do func()) int64 {
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	do()
	for last := uint64(0); ; {
		runtime.ReadMemStats(&now)
		if now.TotalAlloc-last < 64<<10 {
			return int64(now.TotalAlloc - before.TotalAlloc)
		}
		last = now.TotalAlloc
		time.Sleep(20 * time.Millisecond)
	}
}

// B52, within the limits: a frame that is announced costs what has arrived of it,
// also on a connection that has authenticated, where any number of streams is read.
func TestAnnouncedBytesWithinTheLimit(t *testing.T) {
	const streams = 600
	for _, tt := range []struct {
		name   string
		header []byte
	}{
		{"message", wire.AppendHeader(nil, 0, wire.PreauthMaxPayload)},
		{"publish", wire.AppendHeader(nil, wire.FlagPublish|wire.FlagPublishAcked, wire.PreauthMaxPayload)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := start(t, func(c *Config) { c.ConnectionIngressBytes, c.IngressBytes = 64<<20, 64<<20 })
			c := h.dial()
			all := make([]*control, 0, streams)
			for range streams {
				all = append(all, c.authed())
			}
			grown := allocatedWhile(func() {
				for _, k := range all {
					k.write(tt.header)
				}
			})
			if grown > streams*12<<10 {
				t.Errorf("%d bytes were allocated for %d announcements", grown, streams)
			}
		})
	}
}

// One frame opens thousands of streams, as an id opens all lower ones: a connection
// that has not authenticated is not let to hold them.
func TestStreamsOpenedBeforeAuth(t *testing.T) {
	h := start(t, nil)
	c := h.dial()
	var last *quic.Stream
	for range 1500 {
		s, err := c.conn.OpenStream()
		if err != nil {
			t.Fatal(err)
		}
		last = s
	}
	if _, err := last.Write([]byte("F")); err != nil {
		t.Fatal(err)
	}
	if code := c.closeCode(); code != closeUnauthenticated {
		t.Errorf("close code %d", code)
	}
}

// A frame that does not arrive holds up its own stream, not what its siblings
// publish.
func TestStalledFrameHoldsUpNobodyElse(t *testing.T) {
	for _, tt := range []struct {
		name  string
		flags wire.Flags
	}{{"publish", wire.FlagPublish | wire.FlagPublishAcked}, {"message", 0}} {
		t.Run(tt.name, func(t *testing.T) {
			h := start(t, nil)
			h.memory("s", 1, nil)
			c := h.dial()
			for range 3 {
				k := c.authed()
				k.write(append(wire.AppendHeader(nil, tt.flags, wire.MaxPayload), make([]byte, 100<<10)...))
			}
			k := c.authed()
			for i := range 20 {
				k.publish(publish(uint64(i), "s", "x"))
				if a := k.ack(); !a.OK {
					t.Fatalf("publish %d: %+v", i, a)
				}
			}
		})
	}
}

// Answers that are not read hold up their own stream, not what its siblings publish.
func TestUnreadAnswersHoldUpNobodyElse(t *testing.T) {
	const room = 256 << 10
	h := start(t, func(c *Config) {
		c.MaxUnanswered = 4
		c.ConnectionIngressBytes, c.ShardIngressBytes = room, room
	})
	st := h.memory("s", 1, nil)
	c := h.dial(func(c *quic.Config) { c.InitialStreamReceiveWindow, c.MaxStreamReceiveWindow = 512, 512 })
	large := wire.AppendPublish(nil, publish(7, "s", strings.Repeat("x", room/3)))
	for range 3 {
		k := c.authed()
		go func() {
			for range 30 {
				if _, err := k.s.Write(large); err != nil {
					return // the connection is over
				}
			}
		}()
	}
	var last uint64
	eventually(t, "all three are held up", func() bool {
		now := shardsOf(st)[0].Mark()
		stopped := now > 0 && now == last
		last = now
		if !stopped {
			time.Sleep(100 * time.Millisecond)
		}
		return stopped
	})
	k := c.authed()
	for i := range 5 {
		k.publish(publish(uint64(i), "s", strings.Repeat("x", room/2)))
		if a := k.ack(); !a.OK {
			t.Fatalf("publish %d: %+v", i, a)
		}
	}
}

// An answer is short whatever the client called its stream: thousands of them wait
// for a client that does not read.
func TestRefusalsAreShort(t *testing.T) {
	h := start(t, nil)
	k := h.dial().authedAs("writer", allFlags, allFeatures)
	name := strings.Repeat("ü", 30_000)
	k.publish(publish(1, name, "x"))
	if a := k.ack(); a.OK || len(a.Message) > maxText+100 || a.Code != wire.CodeForbidden {
		t.Errorf("code %s with %d bytes of text", a.Code, len(a.Message))
	}
	k.publish(publish(2, "open-"+name, "x"))
	if a := k.ack(); a.OK || len(a.Message) > maxText+100 || a.Code != wire.CodeNotFound {
		t.Errorf("code %s with %d bytes of text", a.Code, len(a.Message))
	}
	k.send(&wire.Subscribe{TenantID: testTenant, Namespace: "default", Stream: name})
	if e := k.wantError(wire.CodeForbidden); len(e.Message) > maxText+100 {
		t.Errorf("%d bytes of text", len(e.Message))
	}
}

// A client that never reads its answers is given up, with what waits for it.
func TestAnswersNeverRead(t *testing.T) {
	h := start(t, func(c *Config) { c.AnswerTimeout = 100 * time.Millisecond })
	h.memory("s", 1, nil)
	c := h.dial(func(c *quic.Config) { c.InitialStreamReceiveWindow, c.MaxStreamReceiveWindow = 512, 512 })
	publishes, requests := c.authed(), c.authed()
	for i := range 100 {
		publishes.publish(publish(uint64(i), "s", "x"))
	}
	for i := range 30 {
		requests.send(&wire.StreamShards{TenantID: testTenant, Namespace: "default", Stream: "s", RequestID: uint64(i)})
	}
	eventually(t, "both streams are given up", func() bool { return h.server.Stats().Streams == 0 })
	if n := h.server.owed.Load(); n != 0 {
		t.Errorf("%d answers owed", n)
	}
	c.authed().alive()
}

// A client that never reads its answers does not take the time that others have for
// an orderly end.
func TestDrainDoesNotWaitForUnreadAnswers(t *testing.T) {
	h := start(t, nil)
	h.memory("s", 1, nil)
	c := h.dial(func(c *quic.Config) { c.InitialStreamReceiveWindow, c.MaxStreamReceiveWindow = 512, 512 })
	k := c.authed()
	for i := range 100 {
		k.publish(publish(uint64(i), "s", "x"))
	}
	st, err := h.dir.Stream(streamName("s"))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "all are committed", func() bool { return shardsOf(st)[0].Mark() == 100 })
	ctx, cancel := context.WithTimeout(t.Context(), testWait)
	defer cancel()
	begun := time.Now()
	if err := h.server.Drain(ctx); err != nil {
		t.Error(err)
	}
	if took := time.Since(begun); took > testWait/2 {
		t.Errorf("took %s", took)
	}
}

// What waits for room at a stuck shard takes none of the process's meanwhile.
func TestWaitingForAShardTakesNoRoomFromOthers(t *testing.T) {
	const wait = 8 * time.Second
	h := start(t, func(c *Config) {
		c.IngressBytes, c.ConnectionIngressBytes, c.ShardIngressBytes = 256<<10, 256<<10, 64<<10
		c.PublishIngressWait = wait
	})
	stuck := h.held("stuck")
	h.memory("healthy", 1, nil)
	hostile := h.dial()
	for range 4 {
		hostile.authed().publish(publish(1, "stuck", strings.Repeat("x", 50<<10)))
	}
	eventually(t, "the first is with its shard", func() bool { return stuck.appended() == 1 })
	k := h.dial().authed()
	begun := time.Now()
	k.publish(publish(1, "healthy", strings.Repeat("x", 120<<10)))
	if a := k.ack(); !a.OK || time.Since(begun) > wait/2 {
		t.Errorf("after %s: %+v", time.Since(begun), a)
	}
	stuck.release()
}

// A frame whose patience ran out just when it was given room has none left for its
// next wait, rather than no end of it.
func TestPatienceRunsOutOnce(t *testing.T) {
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			first, second := newBudget(1), newBudget(1)
			first.try(1)
			second.try(1)
			p := &patience{limit: time.Second}
			defer p.stop()
			go func() {
				time.Sleep(time.Second)
				first.release(1)
			}()
			if !first.acquire(1, p) {
				return
			}
			begun := time.Now()
			if second.acquire(1, p) || time.Since(begun) > time.Second {
				t.Fatal("waited for ever")
			}
		})
	}
}

// Strangers who take up the places are given less time to say who they are.
func TestStrangersHaveLittleTimeWhenItIsCrowded(t *testing.T) {
	const patience = 10 * time.Second
	h := start(t, func(c *Config) { c.MaxConnections, c.MaxConnectionsPerAddress, c.AuthTimeout = 8, 8, patience })
	early := h.dial()
	h.dial().authed()
	for range 3 {
		h.dial()
	}
	begun := time.Now()
	h.dial()
	late := h.dial() // the seventh: more than three quarters are taken
	if code := late.closeCode(); code != closeAuthTimeout || time.Since(begun) > patience/2 {
		t.Errorf("close code %d after %s", code, time.Since(begun))
	}
	select {
	case <-early.conn.Context().Done():
		t.Error("who came before was closed as well")
	default:
	}
}

// What ends a stream comes after the answers that are owed on it: a client fails
// whatever is outstanding when it meets another frame.
func TestOwedAnswersComeBeforeTheEnd(t *testing.T) {
	h := start(t, nil)
	slow := h.held("slow")
	k := h.dial().authed()
	k.publish(publish(1, "slow", "x"))
	k.publish(publish(2, "slow", "x"))
	k.send(&wire.Subscribed{})
	eventually(t, "both are with their shard", func() bool { return slow.appended() > 0 })
	time.Sleep(20 * time.Millisecond) // in which an error would be on its way
	slow.release()
	for id := range uint64(2) {
		if a := k.ack(); !a.OK || a.RequestID != id+1 {
			t.Errorf("got %+v, want the answer to %d", a, id+1)
		}
	}
	k.wantError(wire.CodeInvalidRequest)
	k.wantEnd()
}

// A connection that completes its handshake while the server closes is closed too.
func TestCloseMeetsNewConnections(t *testing.T) {
	for range 5 {
		h := start(t, func(c *Config) { c.AuthTimeout = time.Hour })
		ctx, stopped := context.WithCancel(t.Context())
		dialled := make(chan struct{})
		go func() {
			defer close(dialled)
			conn, err := quic.DialAddr(ctx, h.server.Addr().String(), clientTLS(), nil)
			if err == nil {
				<-conn.Context().Done()
			}
		}()
		time.Sleep(rand.N(5 * time.Millisecond))
		begun := time.Now()
		h.stop()
		if took := time.Since(begun); took > testWait/2 {
			t.Errorf("took %s", took)
		}
		stopped()
		<-dialled
	}
}
