package route

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"felix.dev/felix/broker/wire"
	"felix.dev/felix/broker/wire/frameio"
)

const (
	// copyBelow is how many bytes of records are copied behind their head, to share a
	// write with their neighbours; more are written from where they are.
	copyBelow = 16 << 10
	// writeBytes is when such a buffer is full, and the most that one deadline is held
	// against.
	writeBytes = 64 << 10
	readBuffer = 16 << 10
)

var (
	errSilent = errors.New("route: the broker is silent")
	errIdle   = errors.New("route: nothing to forward")
)

// session is one connection of a link while it lasts.
type session struct {
	l        *link
	conn     net.Conn
	heard    atomic.Int64 // when the owner was last heard, or took a part of a large publish; ns since the epoch
	patience              // the writer's
	buf      []byte       // the writer's
	batch    []*entry     // the writer's
}

// patience moves a write deadline at most once in an eighth of its time: to set it costs as
// much as a small write.
type patience struct{ until time.Time }

func (p *patience) extend(conn net.Conn, now time.Time, limit time.Duration) error {
	if p.until.Sub(now) >= limit {
		return nil
	}
	p.until = now.Add(limit + limit/8)
	return conn.SetWriteDeadline(p.until)
}

// serve runs a connection until it fails, or is not used, or ctx is over.
func (l *link) serve(ctx context.Context, conn net.Conn) error {
	s := &session{l: l, conn: conn}
	l.mu.Lock()
	l.state, l.backoff, l.retryAt = linkUp, 0, time.Time{}
	l.busy = l.f.now()
	blocked := l.blocked
	l.blocked = nil
	l.mu.Unlock()
	for _, p := range blocked {
		l.f.look(p)
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var both sync.WaitGroup
	both.Go(func() { fail(s.write(ctx)) })
	both.Go(func() { fail(s.read()) })
	s.guard(ctx, fail)
	_ = conn.Close() // it has served its time: reader and writer end with it
	both.Wait()
	if err := context.Cause(ctx); !errors.Is(err, errIdle) && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// guard watches the connection until ctx is over: an owner that has publishes and says
// nothing is asked, and then given up.
func (s *session) guard(ctx context.Context, fail context.CancelCauseFunc) {
	cfg := &s.l.f.cfg
	tick := time.NewTicker(cfg.SilenceTimeout / 8)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := s.l.f.now()
		heard := time.Unix(0, s.heard.Load())
		l := s.l
		l.mu.Lock()
		busy := l.busy
		working := len(l.out)+len(l.sent) > 0
		closing := l.closing
		l.mu.Unlock()
		if heard.Before(busy) {
			heard = busy
		}
		silent := now.Sub(heard)
		switch {
		case working && silent >= cfg.SilenceTimeout:
			fail(fmt.Errorf("%w for %s", errSilent, silent.Round(time.Millisecond)))
		case working && silent >= cfg.SilenceTimeout/4:
			l.mu.Lock()
			l.ping = true
			l.mu.Unlock()
			l.wake()
		case !working && (closing || silent >= cfg.IdleTimeout):
			fail(errIdle)
		}
		l.expire(now)
	}
}

// write sends what the link has until ctx is over.
func (s *session) write(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.l.kick:
		}
		for {
			ping, more := s.take()
			if !more {
				break
			}
			if err := s.send(ping); err != nil {
				return err
			}
			clear(s.batch)
			s.batch = s.batch[:0]
		}
	}
}

// take takes what there is to write, some at a time, and gives each its id.
func (s *session) take() (ping, more bool) {
	l := s.l
	l.mu.Lock()
	defer l.mu.Unlock()
	n, bytes := 0, 0
	for n < len(l.out) && (n == 0 || bytes < writeBytes) {
		e := l.out[n]
		l.id++
		e.id = l.id
		l.sent[e.id] = e
		s.batch = append(s.batch, e)
		bytes += headLen + len(e.pub.Records.Bytes)
		n++
	}
	rest := copy(l.out, l.out[n:])
	clear(l.out[rest:])
	l.out = l.out[:rest]
	ping, l.ping = l.ping, false
	return ping, ping || n > 0
}

// send writes the batch.
func (s *session) send(ping bool) error {
	s.buf = s.buf[:0]
	var last uint64
	for _, e := range s.batch {
		s.buf = appendPublish(s.buf, e, e.round)
		last = e.id
		if len(e.pub.Records.Bytes) < copyBelow {
			s.buf = append(s.buf, e.pub.Records.Bytes...)
			continue
		}
		if err := s.flush(last, s.buf); err != nil {
			return err
		}
		for rest := e.pub.Records.Bytes; len(rest) > 0; {
			step := rest[:min(len(rest), writeBytes)]
			if err := s.flush(last, step); err != nil {
				return err
			}
			rest = rest[len(step):]
			s.heard.Store(s.l.f.now().UnixNano()) // what is large takes its time
		}
		s.buf = s.buf[:0]
	}
	if ping {
		s.buf = appendPing(s.buf)
	}
	if len(s.buf) > 0 {
		if err := s.flush(last, s.buf); err != nil {
			return err
		}
	}
	s.l.wrote(s.batch)
	return nil
}

// flush writes b, behind which ids up to last may have reached the owner.
func (s *session) flush(last uint64, b []byte) error {
	s.l.mu.Lock()
	s.l.started = max(s.l.started, last)
	s.l.mu.Unlock()
	err := s.extend(s.conn, s.l.f.now(), s.l.f.cfg.SilenceTimeout)
	if err == nil {
		_, err = s.conn.Write(b)
	}
	if err != nil {
		return fmt.Errorf("route: forward to %s: %w", s.l.node, err)
	}
	return nil
}

// read takes answers until the connection ends.
func (s *session) read() error {
	frames := frameio.NewReader(s.conn, readBuffer)
	var buf []byte
	for {
		h, err := frames.Next()
		if err != nil {
			return fmt.Errorf("route: answers of %s: %w", s.l.node, err)
		}
		if buf, err = frames.Payload(h, buf); err != nil {
			return fmt.Errorf("route: answers of %s: %w", s.l.node, err)
		}
		s.heard.Store(s.l.f.now().UnixNano())
		if h.Flags == 0 && h.Length == 0 {
			continue // the answer to a ping
		}
		a, err := wire.DecodeAck(h.Flags, buf)
		if err != nil {
			return fmt.Errorf("route: answers of %s: %w", s.l.node, err)
		}
		if err := s.l.answer(&a); err != nil {
			return err
		}
	}
}
