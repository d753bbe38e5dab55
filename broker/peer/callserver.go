package peer

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"
)

// smallCall is a body that needs not wait for memory. largeCalls bodies of the
// largest size may be there at once.
const (
	smallCall  = 64 << 10
	largeCalls = 16
)

// callServer answers the calls of one connection, one after the other.
type callServer struct {
	t      *Transport
	c      *Conn
	r      *bufio.Reader
	busy   atomic.Bool
	calls  chan request
	readBy error // why reading ended, once calls is closed
}

// serveCalls is the handler of KindCall. A goroutine reads on while a call is being
// answered: so it is noticed when the caller goes away.
func (t *Transport) serveCalls(ctx context.Context, c *Conn) {
	ctx, cancel := context.WithCancel(ctx)
	s := &callServer{t: t, c: c, r: bufio.NewReader(c), calls: make(chan request)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer cancel()
		s.readBy = s.read(ctx)
		close(s.calls)
	}()
	err := s.answerAll(ctx)
	cancel()
	_ = c.Close() // reading ends by it
	<-done
	if err != nil && t.ctx.Err() == nil {
		t.cfg.Log.Warn("connection for calls closed", slog.String("node", c.Node), slog.Any("error", err))
	}
}

// read gives the calls that come, until none will anymore.
func (s *callServer) read(ctx context.Context) error {
	for {
		if err := s.await(ctx); err != nil {
			return err
		}
		if err := s.c.SetReadDeadline(time.Now().Add(s.t.cfg.CallTimeout)); err != nil {
			return err
		}
		var held int64
		r, err := readRequest(s.r, s.t.cfg.MaxCallBytes, func(n int) (err error) {
			held, err = s.admit(ctx, n)
			return err
		})
		if err != nil {
			s.t.largeCalls.Release(held)
			return err
		}
		r.held = held
		s.busy.Store(true)
		select {
		case s.calls <- r:
		case <-ctx.Done():
			s.t.largeCalls.Release(held)
			return ctx.Err()
		}
	}
}

// await returns as soon as there is something to read. Callers keep a connection for
// IdleTimeout; here it may idle for longer, so that theirs is the side that closes it.
func (s *callServer) await(ctx context.Context) error {
	for {
		if err := s.c.SetReadDeadline(time.Now().Add(2 * s.t.cfg.IdleTimeout)); err != nil {
			return err
		}
		_, err := s.r.Peek(1)
		if !isTimeout(err) || !s.busy.Load() || ctx.Err() != nil {
			return err
		}
	}
}

// answerAll ends without an error when there are no more calls.
func (s *callServer) answerAll(ctx context.Context) error {
	for r := range s.calls {
		b := s.t.answerCall(ctx, s.c.Node, &r)
		s.t.largeCalls.Release(r.held)
		s.busy.Store(false)
		if ctx.Err() != nil {
			continue // nobody is there to hear it
		}
		if err := s.write(b); err != nil {
			return fmt.Errorf("answer to %s: %w", r.method, err)
		}
	}
	var e *Error
	switch {
	case errors.Is(s.readBy, ErrTooLarge):
		e = &Error{Code: CodeTooLarge, Message: s.readBy.Error()}
	case errors.Is(s.readBy, ErrProtocol):
		e = &Error{Code: CodeBadRequest, Message: s.readBy.Error()}
	default:
		return nil
	}
	if s.write(failure(e)) == nil {
		s.c.socket.part(s.c.secure)
	}
	return s.readBy
}

func (s *callServer) write(b []byte) error {
	if err := s.c.SetWriteDeadline(time.Now().Add(s.t.cfg.CallTimeout)); err != nil {
		return err
	}
	_, err := s.c.Write(b)
	return err
}

// admit waits until a body that is large may take memory.
func (s *callServer) admit(ctx context.Context, n int) (held int64, err error) {
	if n <= smallCall {
		return 0, nil
	}
	if err := s.t.largeCalls.Acquire(ctx, int64(n)); err != nil {
		return 0, err
	}
	return int64(n), nil
}

// answerCall has the method's handler answer.
func (t *Transport) answerCall(ctx context.Context, from string, r *request) []byte {
	within := r.within
	if within <= 0 {
		within = t.cfg.CallTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	h := t.method(r.method)
	if h == nil {
		return failure(&Error{Code: CodeUnknownMethod, Message: fmt.Sprintf("node %s has no method %q", t.cfg.NodeID, r.method), Retry: true})
	}
	if !json.Valid(r.body) {
		return failure(&Error{Code: CodeBadRequest, Message: "the body is not JSON"})
	}
	resp, err := h(ctx, from, r.body)
	if err != nil {
		return failure(asError(ctx, err))
	}
	body, err := json.Marshal(resp)
	if err != nil {
		return failure(&Error{Code: CodeInternal, Message: "answer: " + err.Error()})
	}
	if len(body) > t.cfg.MaxCallBytes {
		return failure(&Error{Code: CodeTooLarge, Message: fmt.Sprintf("an answer of %d bytes", len(body))})
	}
	return resultBytes(answerOK, body)
}

// asError is what a caller gets of a handler's error.
func asError(ctx context.Context, err error) *Error {
	var e *Error
	switch {
	case errors.As(err, &e):
		return e
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return &Error{Code: CodeTimeout, Message: err.Error()}
	}
	return &Error{Code: CodeInternal, Message: err.Error()}
}

// failure is the answer with an error. A handler may give the same one many times.
func failure(e *Error) []byte {
	body, err := json.Marshal(Error{Code: e.Code, Message: clip(e.Message), Retry: e.Retry})
	if err != nil { // strings always can
		body = []byte(`{"code":"internal","message":""}`)
	}
	return resultBytes(answerFailed, body)
}
