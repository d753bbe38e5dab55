package server

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"felix.dev/felix/broker/egress"
	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/wire"
	"felix.dev/felix/broker/wire/frameio"
)

// Clients that do anything at any moment, to streams that come and go: nothing of
// them is left when they are gone, and who behaves well is served all the while.
func TestHostileClientsAtRandom(t *testing.T) {
	const clients = 10
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	h := startWith(t, egress.Config{SlowConsumerTimeout: 300 * time.Millisecond}, func(c *Config) {
		c.AuthTimeout, c.AnswerTimeout = 500*time.Millisecond, 200*time.Millisecond
		c.EventStreamWait, c.PublishIngressWait = 100*time.Millisecond, 20*time.Millisecond
		c.IngressBytes, c.ConnectionIngressBytes, c.ShardIngressBytes = 512<<10, 192<<10, 96<<10
		c.MaxUnanswered, c.MaxSubscriptions, c.MaxStreams, c.MaxUnauthenticated = 32, 16, 64, 4
	})
	h.memory("healthy", 1, nil)
	h.memory("plain", 3, func(c *stream.Config) { c.TailBytes = 1 << 20 })
	h.memory("churn", 2, nil)
	slow := h.held("slow")
	h.memory("block", 1, func(c *stream.Config) {
		c.Queue = stream.Queue{Entries: 16, Bytes: 64 << 10, OnFull: stream.Block}
		c.BlockTimeout, c.PublishWait = 200*time.Millisecond, 100*time.Millisecond
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			for ctx.Err() == nil {
				newHostile(h, r).run(ctx)
			}
		})
	}
	seen := make(map[*connection]bool)
	wg.Go(func() { h.churn(ctx, rand.New(rand.NewPCG(seed, clients)), slow, seen) })
	behave(ctx, t, h, time.Now().Add(2*time.Second))
	cancel()
	wg.Wait()

	wantNothingLeft(t, h)
	for c := range seen {
		held := c.ingress.held() + c.arriving.held()
		for _, room := range c.budgets {
			held += room.own.held()
		}
		if held != 0 || c.subs != 0 || len(c.unauthenticated) != 0 {
			t.Errorf("connection %d: %d bytes, %d subscriptions, %d unauthenticated streams left", c.id, held, c.subs, len(c.unauthenticated))
		}
	}
	t.Logf("%d connections", len(seen))
}

// A server that closes in the middle of it all ends in time, and leaves nothing.
func TestShutdownUnderAttack(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	h := startWith(t, egress.Config{SlowConsumerTimeout: 2 * time.Second}, func(c *Config) {
		c.AuthTimeout, c.AnswerTimeout, c.EventStreamWait = time.Minute, time.Minute, time.Minute
		c.ConnectionIngressBytes, c.ShardIngressBytes = 192<<10, 96<<10
	})
	for _, name := range []string{"plain", "churn", "block"} {
		h.memory(name, 2, nil)
	}
	h.held("slow")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			for ctx.Err() == nil {
				dial, stop := context.WithTimeout(ctx, time.Second)
				newHostile(h, r).run(dial)
				stop()
			}
		})
	}
	time.Sleep(300 * time.Millisecond)
	begun := time.Now()
	h.stop()
	if took := time.Since(begun); took > answersEnd+readersEnd+2*time.Second {
		t.Errorf("took %s", took)
	}
	cancel()
	wg.Wait()
	if st := h.server.Stats(); st.Streams != 0 || st.IngressBytes != 0 || h.server.owed.Load() != 0 || len(h.server.open()) != 0 {
		t.Errorf("left: %+v", st)
	}
}

// behave publishes and reads on a connection of its own, among the others, until a
// time and until it was served often enough; ctx is the end of its patience.
func behave(ctx context.Context, t *testing.T, h *harness, until time.Time) {
	const enough = 10
	c := h.dial()
	_, e := c.mustSubscribe(&wire.Subscribe{Stream: "healthy"})
	k := c.authed()
	sent := uint64(0)
	for ctx.Err() == nil && (sent < enough || time.Now().Before(until)) {
		var b [8]byte
		binary.BigEndian.PutUint64(b[:], sent)
		k.publish(publish(sent, "healthy", string(b[:])))
		a := k.ack()
		if a.RequestID != sent || (!a.OK && a.Code != wire.CodeOverloaded) {
			t.Fatalf("publish %d: %+v", sent, a)
		}
		if !a.OK {
			continue
		}
		got := e.read(1)[0]
		if got.Offset != sent || binary.BigEndian.Uint64([]byte(got.Payload)) != sent {
			t.Fatalf("event %+v, want %d", got, sent)
		}
		sent++
	}
	if sent < enough {
		t.Errorf("served %d times", sent)
	}
	_ = c.conn.CloseWithError(0, "")
}

// churn deletes and makes streams, holds commits, and ends subscriptions, until ctx
// is over. It notes the connections that it sees.
func (h *harness) churn(ctx context.Context, r *rand.Rand, slow *heldLog, seen map[*connection]bool) {
	defer slow.release()
	for ctx.Err() == nil {
		for _, c := range h.server.open() {
			seen[c] = true
		}
		if r.IntN(3) == 0 {
			slow.release()
		} else {
			slow.hold()
		}
		h.remove("churn")
		h.memory("churn", 1+r.IntN(3), func(c *stream.Config) { c.First = h.server.subIDs.Load() << 32 })
		for _, name := range []string{"plain", "block", "churn"} {
			st, err := h.dir.Stream(streamName(name))
			if err != nil {
				h.t.Error(err)
				return
			}
			for _, shard := range shardsOf(st) {
				for _, sub := range shard.Subscriptions() {
					if r.IntN(10) == 0 {
						shard.End(sub.ID)
					}
				}
			}
		}
		time.Sleep(rand.N(20 * time.Millisecond))
	}
}

// wantNothingLeft waits until the server has forgotten its clients.
func wantNothingLeft(t *testing.T, h *harness) {
	t.Helper()
	err := leftovers(h)
	for deadline := time.Now().Add(testWait); err != nil && time.Now().Before(deadline); err = leftovers(h) {
		time.Sleep(5 * time.Millisecond)
	}
	if err != nil {
		t.Error(err)
	}
}

// leftovers says what the server holds though nobody is connected.
func leftovers(h *harness) error {
	s := h.server
	if st := s.Stats(); st != (Stats{}) || s.owed.Load() != 0 || len(s.open()) != 0 {
		return fmt.Errorf("%+v, %d answers owed, %d connections", st, s.owed.Load(), len(s.open()))
	}
	s.gate.mu.Lock()
	total, addrs := s.gate.total, len(s.gate.byAddr)
	s.gate.mu.Unlock()
	s.windows.mu.Lock()
	granted, conns := s.windows.granted, len(s.windows.byConn)
	s.windows.mu.Unlock()
	if total+addrs+conns != 0 || granted != 0 {
		return fmt.Errorf("gate: %d of %d addresses, windows: %d of %d connections", total, addrs, granted, conns)
	}
	h.dir.mu.Lock()
	defer h.dir.mu.Unlock()
	for name, st := range h.dir.streams {
		for i, shard := range shardsOf(st) {
			if n := len(shard.Subscriptions()); n != 0 {
				return fmt.Errorf("%s shard %d: %d subscriptions", name, i, n)
			}
		}
	}
	return nil
}

// hostile is one connection of a client without manners. Every failure of its own is
// what it asked for.
type hostile struct {
	h    *harness
	rand *rand.Rand
	conn *quic.Conn
}

func newHostile(h *harness, r *rand.Rand) *hostile { return &hostile{h: h, rand: r} }

// fork is for a goroutine of its own.
func (c *hostile) fork() *hostile {
	return &hostile{h: c.h, conn: c.conn, rand: rand.New(rand.NewPCG(c.rand.Uint64(), c.rand.Uint64()))}
}

func (c *hostile) one(in int) bool { return c.rand.IntN(in) == 0 }

func (c *hostile) pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(time.Duration(c.rand.IntN(30)) * time.Millisecond):
	}
}

func (c *hostile) run(ctx context.Context) {
	window := uint64(512) << c.rand.IntN(12)
	cfg := &quic.Config{
		InitialStreamReceiveWindow: window, MaxStreamReceiveWindow: window,
		InitialConnectionReceiveWindow: 2 * window, MaxConnectionReceiveWindow: 2 * window,
		MaxIncomingUniStreams: int64(c.rand.IntN(24)) - 1,
	}
	wait := testWait // a dial that is given up lasts for seconds
	if c.h.server.draining.Load() {
		wait = time.Millisecond
	}
	dial, cancel := context.WithTimeout(c.h.t.Context(), wait)
	defer cancel()
	conn, err := quic.DialAddr(dial, c.h.server.Addr().String(), clientTLS(), cfg)
	if err != nil {
		return
	}
	c.conn = conn
	var wg sync.WaitGroup
	reader := c.fork()
	wg.Go(func() { reader.events(ctx) })
	for range 1 + c.rand.IntN(12) {
		k := c.fork()
		wg.Go(func() { k.stream(ctx) })
	}
	if c.one(3) { // closed in the middle of everything
		c.pause(ctx)
		_ = conn.CloseWithError(quic.ApplicationErrorCode(c.rand.IntN(5)), "")
	}
	select {
	case <-conn.Context().Done():
	case <-ctx.Done():
	case <-time.After(300 * time.Millisecond):
	}
	_ = conn.CloseWithError(0, "")
	wg.Wait()
}

// events takes event streams, and reads, drops or ignores them.
func (c *hostile) events(ctx context.Context) {
	for {
		s, err := c.conn.AcceptUniStream(ctx)
		if err != nil {
			return
		}
		switch c.rand.IntN(3) {
		case 0:
			s.CancelRead(quic.StreamErrorCode(c.rand.IntN(3)))
		case 1:
			_ = s.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
			_, _ = io.CopyN(io.Discard, s, int64(c.rand.IntN(1<<20)))
		}
	}
}

// stream is what happens on one stream.
func (c *hostile) stream(ctx context.Context) {
	s, err := c.conn.OpenStreamSync(ctx)
	if err != nil {
		return
	}
	_ = s.SetWriteDeadline(time.Now().Add(200 * time.Millisecond))
	if c.one(2) {
		r := c.fork()
		go r.answers(s)
	}
	if !c.one(8) {
		_, _ = s.Write(c.auth())
	}
	for range c.rand.IntN(24) {
		b := c.frame()
		switch c.rand.IntN(40) {
		case 0:
			s.CancelRead(0)
		case 1:
			s.CancelWrite(0)
		case 2:
			b = b[:c.rand.IntN(len(b)+1)] // what follows is not where it should be
		case 3:
			c.pause(ctx)
		}
		if _, err := s.Write(b); err != nil {
			break
		}
	}
	if !c.one(3) {
		_ = s.Close()
	}
}

// answers reads some answers.
func (c *hostile) answers(s *quic.Stream) {
	frames := frameio.NewReader(s, 0)
	frames.SetLimit(wire.MaxPayload)
	_ = s.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
	for range c.rand.IntN(50) {
		h, err := frames.Next()
		if err != nil || frames.Skip(h) != nil {
			break
		}
	}
	if c.one(2) {
		s.CancelRead(0)
	}
}

func (c *hostile) auth() []byte {
	m := &wire.Auth{TenantID: testTenant, Token: "good"}
	switch c.rand.IntN(10) {
	case 0:
		m.Token = "bad"
	case 1:
		m.Token = "hang"
	case 2:
		m.TenantID = "t2"
	}
	if !c.one(4) {
		m.ClientFlags, m.ClientFeatures = new(wire.Flags(c.rand.Uint32())), wire.Features(c.rand.Uint32())
	}
	return wire.AppendMessage(nil, m)
}

// frame is something that a client could send, or could not.
func (c *hostile) frame() []byte {
	name := []string{"plain", "churn", "block", "slow", "none", "healthy/../plain", ""}[c.rand.IntN(7)]
	switch c.rand.IntN(12) {
	case 0, 1, 2, 3, 4:
		return wire.AppendPublish(nil, c.binary(name))
	case 5:
		m := &wire.PublishBatchJSON{TenantID: testTenant, Namespace: "default", Stream: name, Records: c.records(), Ack: wire.AckMode(c.rand.IntN(3))}
		if !c.one(8) {
			m.RequestID = new(c.rand.Uint64N(9))
		}
		return wire.AppendMessage(nil, m)
	case 6:
		return wire.AppendMessage(nil, &wire.PublishIdempotent{
			TenantID: testTenant, Namespace: "default", Stream: name, Records: c.records(),
			RequestID: c.rand.Uint64N(9), ProducerID: c.rand.Uint64N(3), Sequence: c.rand.Uint64N(5),
		})
	case 7, 8:
		m := &wire.Subscribe{TenantID: testTenant, Namespace: "default", Stream: name, Shard: new(c.rand.Uint32N(4))}
		m.Start = &wire.Start{Kind: wire.StartKind(c.rand.IntN(3)), Offset: c.rand.Uint64N(50)}
		return wire.AppendMessage(nil, m)
	case 9:
		return wire.AppendMessage(nil, []wire.Message{
			&wire.Topology{}, &wire.StreamShards{TenantID: testTenant, Namespace: "default", Stream: name},
			&wire.ShardOwners{TenantID: testTenant, Namespace: "default", Name: name, Kind: "stream"},
			&wire.ProducerInit{}, &wire.Unknown{Type: "cache_get"}, &wire.Extension{Name: name}, &wire.Subscribed{},
		}[c.rand.IntN(7)])
	case 10: // a header of anything, and half of what it announces
		n := c.rand.IntN(200 << 10)
		b := wire.AppendHeader(nil, wire.Flags(c.rand.Uint32()), n)
		return append(b, make([]byte, n/(1+c.rand.IntN(2)))...)
	}
	b := make([]byte, c.rand.IntN(64))
	for i := range b {
		b[i] = byte(c.rand.Uint32())
	}
	if c.one(2) {
		return b
	}
	return append(wire.AppendHeader(nil, wire.FlagPublish|wire.FlagPublishAcked, len(b)), b...)
}

func (c *hostile) binary(name string) *wire.Publish {
	p := &wire.Publish{
		Acked: c.one(2), RequestID: c.rand.Uint64N(9), AckMode: wire.AckPerBatch,
		Keyed: c.one(2), Key: make([]byte, c.rand.IntN(64)),
		Tenant: []byte(testTenant), Namespace: []byte("default"), Stream: []byte(name), Records: c.records(),
	}
	if c.one(40) {
		p.Key = make([]byte, 1<<16-1)
	}
	if c.one(20) {
		p.Tenant = []byte("t2")
	}
	if p.Acked && c.one(4) {
		p.Idempotent, p.ProducerID, p.Sequence = true, c.rand.Uint64N(3), c.rand.Uint64N(5)
	}
	return p
}

func (c *hostile) records() wire.Records {
	var all [][]byte
	for range c.rand.IntN(5) {
		n := c.rand.IntN(2000)
		if c.one(10) {
			n = c.rand.IntN(100 << 10)
		}
		all = append(all, make([]byte, n))
	}
	return wire.RecordsOf(all...)
}

// A client may go away at any byte of what it sends, in any way: the session ends, and
// what it had sent in full is done.
func TestEveryByteMayBeTheLast(t *testing.T) {
	h := start(t, nil)
	h.memory("s", 1, nil)
	c := h.dial()
	session := wire.AppendMessage(nil, &wire.Auth{TenantID: testTenant, Token: "good", ClientFlags: new(allFlags), ClientFeatures: allFeatures})
	session = wire.AppendPublish(session, publish(1, "s", "x"))
	session = wire.AppendMessage(session, &wire.Subscribe{TenantID: testTenant, Namespace: "default", Stream: "s"})
	session = wire.AppendMessage(session, &wire.ProducerInit{RequestID: 2})
	for _, end := range []struct {
		name string
		do   func(*quic.Stream)
	}{
		{"FIN", func(s *quic.Stream) { _ = s.Close() }},
		{"RESET", func(s *quic.Stream) { s.CancelWrite(0) }},
		{"STOP_SENDING and FIN", func(s *quic.Stream) { s.CancelRead(0); _ = s.Close() }},
	} {
		for n := 0; n <= len(session); n += 7 {
			k := c.open()
			if n > 0 {
				k.write(session[:n])
			}
			end.do(k.s)
		}
	}
	eventually(t, "only subscriptions are left", func() bool {
		st, err := h.dir.Stream(streamName("s"))
		return err == nil && h.server.Stats().Streams == len(shardsOf(st)[0].Subscriptions()) && h.server.owed.Load() == 0
	})
	_ = c.conn.CloseWithError(0, "")
	wantNothingLeft(t, h)
}
