package stream

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"felix.dev/felix/broker/seglog"
	"felix.dev/felix/broker/wire"
)

// fakeLog keeps records in a slice and commits when told to: with auto at once, in
// the appender's goroutine, otherwise when the test calls commit.
type fakeLog struct {
	hooks Hooks
	auto  bool

	committing sync.Mutex

	mu      sync.Mutex
	records []seglog.Record
	first   uint64
	next    uint64
	oldest  uint64
	fail    error
	appends int
	during  func([]seglog.Record) // called by the next Append, before it reads the records
}

func (l *fakeLog) Append(rs []seglog.Record) error {
	if f := l.during; f != nil {
		l.during = nil
		f(rs)
	}
	l.mu.Lock()
	if err := l.fail; err != nil {
		l.mu.Unlock()
		return err
	}
	l.appends++
	for _, r := range rs {
		if r.Base != l.next {
			l.mu.Unlock()
			return fmt.Errorf("base %d, want %d", r.Base, l.next)
		}
		r.Frame = slices.Clone(r.Frame)
		l.records = append(l.records, r)
		l.next += uint64(r.Count)
	}
	auto := l.auto
	l.mu.Unlock()
	if auto {
		l.commit()
	}
	return nil
}

// release commits what is there and, from now on, whatever comes.
func (l *fakeLog) release() {
	l.mu.Lock()
	l.auto = true
	l.mu.Unlock()
	l.commit()
}

func (l *fakeLog) commit() {
	l.committing.Lock() // as a log does, from one goroutine at a time
	defer l.committing.Unlock()
	l.mu.Lock()
	n := l.next
	l.mu.Unlock()
	l.hooks.Committed(n, nil)
}

type fakeReader struct {
	l    *fakeLog
	next uint64
}

func (l *fakeLog) Reader(from uint64) Reader { return &fakeReader{l, from} }
func (r *fakeReader) Seek(to uint64)         { r.next = to }
func (r *fakeReader) Read(limit uint64, maxBytes int, buf []byte) (seglog.Page, error) {
	p, err := r.l.read(r.next, limit, maxBytes, buf)
	r.next = p.Next
	return p, err
}

func (l *fakeLog) read(from, limit uint64, maxBytes int, buf []byte) (seglog.Page, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if from < l.oldest {
		return seglog.Page{}, &seglog.TooOldError{Requested: from, Oldest: l.oldest}
	}
	p := seglog.Page{First: from, Next: from, Frames: buf[:0]}
	for _, r := range l.records {
		end := r.Base + uint64(r.Count)
		if end <= from || r.Base >= limit {
			continue
		}
		if r.Kind != seglog.KindEvents {
			if len(p.Frames) > 0 {
				break
			}
			p.Skipped += end - p.Next
			p.First, p.Next = end, end
			continue
		}
		if len(p.Frames) > 0 && len(p.Frames)+len(r.Frame) > maxBytes {
			break
		}
		frame := r.Frame
		if r.Base < from {
			var err error
			if frame, err = wire.AppendFrom(nil, r.Frame, from); err != nil {
				return p, err
			}
		}
		p.Frames = append(p.Frames, frame...)
		p.Records++
		p.Next = end
	}
	return p, nil
}

func (l *fakeLog) value(p *uint64) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return *p
}

func (l *fakeLog) Next() uint64        { return l.value(&l.next) }
func (l *fakeLog) Oldest() uint64      { return l.value(&l.oldest) }
func (l *fakeLog) Stats() seglog.Stats { return seglog.Stats{} }
func (l *fakeLog) Close() error        { return nil }

func openShard(t *testing.T, cfg Config, l *fakeLog) *Shard {
	t.Helper()
	cfg.Name = Name{"t1", "default", "s"}
	cfg.Jitter = func() float64 { return 0.5 }
	var open func(Hooks) (Log, error)
	if l != nil {
		open = func(h Hooks) (Log, error) { l.hooks = h; return l, nil }
	}
	s, err := Open(cfg, open)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if l != nil {
			l.release()
		}
		closeShard(t, s, EndShutdown)
	})
	return s
}

// closeShard closes s with patience: in a cleanup the test's own context is over.
func closeShard(t *testing.T, s *Shard, reason EndReason) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
	defer cancel()
	if err := s.Close(ctx, reason); err != nil {
		t.Error(err)
	}
}

func records(payloads ...string) wire.Records {
	var b []byte
	for _, p := range payloads {
		b = wire.AppendRecord(b, []byte(p))
	}
	return wire.Records{Count: uint32(len(payloads)), Bytes: b}
}

// publish hands payloads in as one batch and gives its result's channel.
func publish(s *Shard, payloads ...string) <-chan Result {
	c := make(chan Result, 1)
	s.Publish(&Publish{Records: records(payloads...), Done: func(r Result) { c <- r }})
	return c
}

func mustPublish(t *testing.T, s *Shard, payloads ...string) uint64 {
	t.Helper()
	select {
	case r := <-publish(s, payloads...):
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		return r.Offset
	case <-time.After(10 * time.Second):
		t.Fatal("publish was not answered")
	}
	return 0
}

func subscribe(t *testing.T, s *Shard, o SubscribeOptions) *Subscription {
	t.Helper()
	sub, err := s.Subscribe(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sub.Close)
	return sub
}

var (
	latest   = wire.Start{Kind: wire.StartLatest}
	earliest = wire.Start{Kind: wire.StartEarliest}
)

func at(n uint64) wire.Start { return wire.Start{Kind: wire.StartOffset, Offset: n} }

// event is one record as a client sees it.
type event struct {
	Offset  uint64
	Payload string
	Skipped uint64
}

// decode reads the frames of a piece.
func decode(t *testing.T, b []byte) (out []event) {
	t.Helper()
	for len(b) > 0 {
		h, err := wire.ParseHeader(b)
		if err != nil {
			t.Fatal(err)
		}
		e, err := wire.DecodeEvents(h.Flags, b[wire.HeaderLen:wire.HeaderLen+int(h.Length)])
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range e.Records.All() {
			ev := event{Offset: e.Base + uint64(i), Payload: string(p)}
			if i == 0 {
				ev.Skipped = e.Skipped
			}
			out = append(out, ev)
		}
		b = b[wire.HeaderLen+int(h.Length):]
	}
	return out
}

// drain reads until the subscription has nothing more to give.
func drain(t *testing.T, sub *Subscription) (out []event, st Status) {
	t.Helper()
	for {
		p, st := sub.Next(32<<10, 128<<10)
		if st != Ready {
			return out, st
		}
		out = append(out, decode(t, p.Bytes)...)
		sub.Advance(p)
	}
}
