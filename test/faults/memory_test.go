package faults_test

import (
	"context"
	"crypto/tls"
	"net"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"golang.org/x/sync/errgroup"

	"felix.dev/felix/broker"
	"felix.dev/felix/broker/admin"
	"felix.dev/felix/broker/wire"
	"felix.dev/felix/client"
)

// TestReplaysHoldBoundedMemory is B07: fifty readers that go through an old log as
// slowly as they like cost the broker a page each, not the log.
func TestReplaysHoldBoundedMemory(t *testing.T) {
	t.Parallel()
	const readers, size, page = 50, 16 << 10, 256 << 10
	records := scaled(4_096, 1_536) // 64 MiB
	p := startProcess(t, nil, func(c *broker.Config) { c.Streams.TailBytes = 1 << 20 })
	s := p.create("s")
	publish(t, publisher(t, p.dial(), s), 1, 0, records, size)
	before := p.heap()
	ctx := bounded(t)
	c := p.dial(window(16 << 10))
	var all []*reader
	for range readers {
		r := newReader(subscribe(t, c, s, client.SubscribeConfig{Start: client.Earliest()}))
		r.check = numbered(0)
		all = append(all, r)
	}
	var most int64
	for step := range uint64(8) {
		for _, r := range all {
			if err := r.until(ctx, 4*(step+1)); err != nil {
				t.Fatal(err)
			}
		}
		most = max(most, p.heap()-before)
	}
	t.Logf("%d readers of a log of %d MiB hold %d KiB", readers, records*size>>20, most>>10)
	if budget := int64(readers*page + 8<<20); most > budget {
		t.Errorf("the broker holds %d bytes for them, more than %d", most, budget)
	}
	// They get the rest if they want it: one does.
	if err := all[0].until(ctx, records); err != nil {
		t.Fatal(err)
	}
}

// TestStalledTenthCostsNoMemory is B01 and B09 with many readers: of those on one
// stream a tenth has stopped. The others lose nothing, and the broker holds no more
// than 64 MiB above what it holds without the stalled ones.
func TestStalledTenthCostsNoMemory(t *testing.T) {
	t.Parallel()
	healthy := scaled(900, 90)
	const records, size, each = 400, 1 << 10, 100 // more than a window, a queue and a write hold
	resident := map[bool]float64{}
	for _, stalled := range []bool{false, true} {
		p := startProcess(t, nil, func(c *broker.Config) { c.Streams.TailBytes = 4 << 20 })
		s := p.create("s", queue(16, 128<<10, "DropNew"))
		ctx := bounded(t)
		if stalled {
			c := p.dial(window(16<<10), func(c *client.Config) { c.MaxSubscriptionsPerConn = 1_000 })
			for range healthy / 9 {
				subscribe(t, c, s, client.SubscribeConfig{NoReconnect: true})
			}
		}
		var reading errgroup.Group
		for from := uint64(0); from < healthy; from += each {
			c := p.dial(window(64 << 10))
			for range min(each, healthy-from) {
				r := newReader(subscribe(t, c, s, client.SubscribeConfig{}))
				r.check = numbered(0)
				reading.Go(func() error { return r.until(ctx, records) })
			}
		}
		publish(t, publisher(t, p.dial(), s), 1, 0, records, size)
		if err := reading.Wait(); err != nil {
			t.Fatal(err)
		}
		if all := sum(p.metrics(), "felix_subscriptions"); stalled && all < float64(healthy+healthy/9) {
			t.Errorf("%v subscriptions, the stalled ones are not there: the test shows nothing", all)
		}
		p.heap() // what is garbage has gone
		resident[stalled] = p.metrics()["process_resident_memory_bytes"]
		p.stop()
	}
	t.Logf("resident: %.1f MiB without stalled readers, %.1f MiB with", resident[false]/(1<<20), resident[true]/(1<<20))
	if more := resident[true] - resident[false]; more > 64<<20 {
		t.Errorf("%d stalled readers cost %.1f MiB", healthy/9, more/(1<<20))
	}
}

// TestConnectionsThatComeToNothing is B65: handshakes that never authenticate and
// connections that vanish without a word leave neither goroutines nor memory behind.
func TestConnectionsThatComeToNothing(t *testing.T) {
	t.Parallel()
	attempts, atOnce := scaled(1_000, 150), 16
	p := startProcess(t, nil, func(c *broker.Config) {
		c.Limits.AuthTimeout = admin.Duration(500 * time.Millisecond)
		c.Limits.IdleTimeout = admin.Duration(time.Second)
	})
	s := p.create("s")
	publish(t, publisher(t, p.dial(), s), 1, 0, 100, 1<<10)
	heap, goroutines := p.heap(), sum(p.metrics(), "go_goroutines")
	to, err := net.ResolveUDPAddr("udp", p.addr)
	if err != nil {
		t.Fatal(err)
	}
	for _, authenticate := range []bool{false, true} {
		g, ctx := errgroup.WithContext(bounded(t))
		g.SetLimit(atOnce)
		for range attempts {
			g.Go(func() error { return p.vanish(ctx, to, s, authenticate) })
		}
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	// Some are gone before the broker has the last word of their handshake.
	if n := sum(p.metrics(), "felix_connections_accepted_total"); n < float64(attempts) {
		t.Errorf("%v connections were accepted of %d", n, 2*attempts)
	}
	eventually(t, "only the publisher's connection is left", func() bool { return sum(p.metrics(), "felix_connections") <= 1 })
	eventually(t, "the goroutines have ended", func() bool { return sum(p.metrics(), "go_goroutines") <= goroutines+2 })
	if grown := p.heap() - heap; grown > 8<<20 {
		t.Errorf("the heap has grown by %d bytes", grown)
	}
}

// vanish connects, perhaps subscribes, and drops its socket.
func (p *process) vanish(ctx context.Context, to net.Addr, s client.Stream, subscribes bool) error {
	socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return err
	}
	tr := &quic.Transport{Conn: socket}
	defer tr.Close()
	defer socket.Close() // before the transport could say goodbye
	conn, err := tr.Dial(ctx, to, &tls.Config{InsecureSkipVerify: true}, &quic.Config{MaxIncomingUniStreams: 10})
	if err != nil {
		return err
	}
	k, err := conn.OpenStreamSync(ctx)
	if err != nil {
		return err
	}
	var b []byte
	if subscribes {
		flags := wire.BaseFlags
		b = wire.AppendMessage(b, &wire.Auth{TenantID: tenant, Token: p.id.token, ClientFlags: &flags})
		b = wire.AppendMessage(b, &wire.Subscribe{
			TenantID: tenant, Namespace: s.Namespace, Stream: s.Name, Start: &wire.Start{Kind: wire.StartEarliest},
		})
	} else {
		b = wire.AppendHeader(b, 0, wire.PreauthMaxPayload) // and then nothing
	}
	if _, err := k.Write(b); err != nil {
		return err
	}
	if subscribes {
		_, err = conn.AcceptUniStream(ctx)
	}
	return err
}
