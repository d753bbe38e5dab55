package fakebroker

import (
	"github.com/quic-go/quic-go"

	"felix.dev/felix/broker/wire"
)

// Sub is a live subscription.
type Sub struct {
	ID      uint64
	Request *wire.Subscribe
	Key     ShardKey
	// Start is the first offset it delivers.
	Start uint64
	// Answered is closed when `subscribed` is out.
	Answered chan struct{}

	b      *Broker
	stream *quic.SendStream
}

func (ss *session) subscribe(m *wire.Subscribe) {
	b := ss.b
	if hook := b.cfg.Hooks.Subscribe; hook != nil {
		if answer := hook(m); answer != nil {
			ss.send(answer)
			return
		}
	}
	key := ShardKey{Namespace: m.Namespace, Stream: m.Stream}
	if m.Shard != nil {
		key.Shard = *m.Shard
	}
	oldest, end := b.cfg.Store.bounds(key)
	start := end
	if m.Start != nil {
		switch m.Start.Kind {
		case wire.StartEarliest:
			start = oldest
		case wire.StartOffset:
			start = m.Start.Offset
		case wire.StartLatest:
		}
	}
	if start < oldest {
		ss.send(&wire.SubscribeCursorError{Reason: wire.CursorTooOld, Requested: start, Available: oldest})
		return
	}
	if start > end {
		ss.send(&wire.SubscribeCursorError{Reason: wire.CursorInFuture, Requested: start, Available: end})
		return
	}
	sub := &Sub{ID: b.nextSub.Add(1), Request: m, Key: key, Start: start, Answered: make(chan struct{}), b: b}
	ss.streams.Go(func() { sub.serve(ss.conn) })
	ss.send(&wire.Subscribed{SubscriptionID: sub.ID, StartOffset: &start, LiveOffset: &end})
	close(sub.Answered)
}

func (s *Sub) serve(c *quic.Conn) {
	hello := true
	if hook := s.b.cfg.Hooks.Order; hook != nil {
		hello = hook(s)
	}
	stream, err := c.OpenUniStreamSync(s.b.ctx)
	if err != nil {
		return
	}
	s.stream = stream
	if !hello {
		// A stream that says nothing: one byte makes it exist for the client.
		if _, err := stream.Write([]byte{'F'}); err == nil {
			<-stream.Context().Done()
		}
		return
	}
	s.b.mu.Lock()
	s.b.subs[s] = struct{}{}
	s.b.mu.Unlock()
	defer func() {
		s.b.mu.Lock()
		delete(s.b.subs, s)
		s.b.mu.Unlock()
	}()
	s.Write(wire.AppendMessage(nil, &wire.EventStreamHello{SubscriptionID: s.ID}))
	if hook := s.b.cfg.Hooks.Events; hook != nil && hook(s) {
		return
	}
	s.Deliver(s.Start)
}

// Write writes any bytes on the event stream, which must exist: in Hooks.Events.
func (s *Sub) Write(b []byte) bool {
	_, err := s.stream.Write(b)
	return err == nil
}

// Deliver writes the log from an offset on until the client leaves.
func (s *Sub) Deliver(from uint64) { s.DeliverTo(from, 0) }

// DeliverTo writes the log from an offset up to another, exclusive; 0: for ever.
func (s *Sub) DeliverTo(from, to uint64) {
	for to == 0 || from < to {
		r, ok := s.b.cfg.Store.read(s.stream.Context(), s.Key, from)
		if !ok {
			return
		}
		if to != 0 && r.base+uint64(len(r.records)) > to {
			r.records = r.records[:to-r.base]
		}
		if !s.Write(EventFrame(r.base, r.skipped, r.records...)) {
			return
		}
		from = r.base + uint64(len(r.records))
	}
}

// EventFrame encodes a batch.
func EventFrame(base, skipped uint64, records ...[]byte) []byte {
	return wire.AppendEvents(nil, &wire.Events{
		HasOffsets: true, Base: base, HasSkipped: skipped > 0, Skipped: skipped, Records: wire.RecordsOf(records...),
	})
}

// Finish ends the event stream with a message, or without one.
func (s *Sub) Finish(m wire.Message) {
	if m != nil {
		s.Write(wire.AppendMessage(nil, m))
	}
	_ = s.stream.Close() // the client sees it or is gone
}

// Reset resets the event stream.
func (s *Sub) Reset() { s.stream.CancelWrite(1) }

// Gone waits until the client has left the event stream.
func (s *Sub) Gone() <-chan struct{} { return s.stream.Context().Done() }
