package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/quic-go/quic-go"

	"felix.dev/felix/broker/wire"
)

// Names of the kinds of streams, for ProtocolError.
const (
	whereControl = "control"
	wherePublish = "publish"
	whereEvent   = "event"
)

// control is a stream that this client opened: for one request, or for the publishes of one publisher.
type control struct {
	s      *quic.Stream
	frames *frameBuf
}

// past is a deadline that has passed.
var past = time.Unix(1, 0)

// interruptWith makes reads and writes of the stream fail when ctx ends, until stop is called.
func (st *control) interruptWith(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, func() {
		// It only fails on a stream that is closed already.
		_ = st.s.SetDeadline(past)
	})
}

// drop gives the stream up in both directions.
func (st *control) drop() {
	st.s.CancelRead(0)
	st.s.CancelWrite(0)
}

// authenticated opens a stream and authenticates it. ok is nil if the broker does not negotiate.
func (cn *conn) authenticated(ctx context.Context) (st *control, ok *wire.AuthOK, err error) {
	err = cn.withToken(ctx, func(auth []byte) error {
		s, err := cn.q.OpenStreamSync(ctx)
		if err != nil {
			return err
		}
		st = &control{s: s, frames: newFrameBuf(s)}
		stop := st.interruptWith(ctx)
		_, writeErr := s.Write(auth)
		ok, err = st.readAuth(writeErr)
		if !stop() && err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			st.drop()
		}
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	return st, ok, nil
}

// withToken calls use with an auth frame, and once more with a newer token if the broker refuses the first.
func (cn *conn) withToken(ctx context.Context, use func(auth []byte) error) error {
	c := cn.client
	flags := offeredFlags
	for again := true; ; again = false {
		token, err := c.tokens.token(ctx)
		if err != nil {
			return err
		}
		err = use(wire.AppendMessage(nil, &wire.Auth{
			TenantID: c.cfg.Tenant, Token: token, ClientFlags: &flags, ClientFeatures: offeredFeatures,
		}))
		refused, ok := errors.AsType[*Error](err)
		if !ok || refused.Code != wire.CodeUnauthenticated || !c.tokens.refuse(token) || !again {
			return err
		}
	}
}

// readAuth reads the answer to an auth. A broker that refuses may stop reading first: writeErr then only counts if
// there is no answer.
func (st *control) readAuth(writeErr error) (*wire.AuthOK, error) {
	m, err := readMessage(st.frames)
	if err != nil {
		if writeErr != nil {
			err = writeErr
		}
		return nil, err
	}
	switch m := m.(type) {
	case *wire.AuthOK:
		return m, nil
	case *wire.OK:
		return nil, nil
	case *wire.ErrorMsg:
		e := errorOf(m.Message, m.Code, m.Retry, m.Detail)
		if m.Code == "" {
			e.Code, e.Retry = wire.CodeUnauthenticated, wire.RetryFatal
		}
		return nil, e
	}
	return nil, &ProtocolError{Where: whereControl, Err: fmt.Errorf("auth was answered with %q", m.MessageType())}
}

// open returns an authenticated stream.
func (cn *conn) open(ctx context.Context) (*control, error) {
	if st := cn.takeSpare(); st != nil {
		return st, nil
	}
	ctx, cancel := cn.requestContext(ctx)
	defer cancel()
	st, _, err := cn.authenticated(ctx)
	if err != nil {
		return nil, cn.requestError(ctx, err)
	}
	return st, nil
}

func (cn *conn) takeSpare() *control {
	cn.mu.Lock()
	defer cn.mu.Unlock()
	st := cn.spare
	cn.spare = nil
	return st
}

// ask sends one request on a stream of its own and returns the one answer; an error message comes back as *Error. The
// request follows the auth at once, as a stream is read in order.
func (cn *conn) ask(ctx context.Context, request wire.Message) (answer wire.Message, err error) {
	ctx, cancel := cn.requestContext(ctx)
	defer cancel()
	if st := cn.takeSpare(); st != nil {
		answer, err = st.exchange(ctx, wire.AppendMessage(nil, request), false)
		return answer, cn.requestError(ctx, err)
	}
	err = cn.withToken(ctx, func(auth []byte) error {
		s, err := cn.q.OpenStreamSync(ctx)
		if err != nil {
			return err
		}
		st := &control{s: s, frames: newFrameBuf(s)}
		answer, err = st.exchange(ctx, wire.AppendMessage(auth, request), true)
		return err
	})
	return answer, cn.requestError(ctx, err)
}

// exchange writes, finishes the sending side, reads the answers and gives the stream up.
func (st *control) exchange(ctx context.Context, out []byte, withAuth bool) (wire.Message, error) {
	defer st.drop()
	stop := st.interruptWith(ctx)
	defer stop()
	_, writeErr := st.s.Write(out)
	if writeErr == nil {
		writeErr = st.s.Close()
	}
	if withAuth {
		if _, err := st.readAuth(writeErr); err != nil {
			return nil, err
		}
	}
	m, err := readMessage(st.frames)
	if err != nil {
		if writeErr != nil {
			err = writeErr
		}
		return nil, err
	}
	switch m := m.(type) {
	case *wire.ErrorMsg:
		return nil, errorOf(m.Message, m.Code, m.Retry, m.Detail)
	case *wire.Unsupported:
		return nil, &UnsupportedError{What: m.RequestType}
	}
	return m, nil
}

// requestContext bounds a request. When its time is up the cause is an *Error that says so.
func (cn *conn) requestContext(ctx context.Context) (context.Context, context.CancelFunc) {
	d := cn.client.cfg.RequestTimeout
	return context.WithTimeoutCause(ctx, d, &Error{
		Retry: wire.RetryNow, Message: fmt.Sprintf("no answer from broker %s within %v", cn.addr, d), Err: errNoAnswer,
	})
}

// requestError turns what went wrong with a request into what the caller should know: its own context's end as it
// is, an answer as it is, and anything else as a lost connection. Nothing was applied, as requests change nothing.
func (cn *conn) requestError(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case isAnswer(err):
		if isDraining(err) {
			cn.client.pool.retire(cn)
		}
		return err
	}
	if !cn.alive() {
		err = cn.why()
	}
	return &Error{Retry: wire.RetryNow, Message: "lost the connection to broker " + cn.addr, Err: err}
}

// isAnswer says that a broker, or the application's own token source, has decided. Everything else is a loss.
func isAnswer(err error) bool {
	return isA[*Error](err) || isA[*UnsupportedError](err) || isA[*ProtocolError](err) || isA[*tokenError](err)
}

func isA[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}

// errNoAnswer is a stream that ended without one, or has none when it is due: it is read as a dead broker.
var errNoAnswer = errors.New("no answer")

// readMessage reads one JSON message.
func readMessage(f *frameBuf) (wire.Message, error) {
	for {
		h, payload, ok, err := f.peek()
		if err != nil {
			return nil, &ProtocolError{Where: whereControl, Err: err}
		}
		if ok {
			if h.Flags != 0 {
				return nil, &ProtocolError{Where: whereControl, Err: fmt.Errorf("frame with flags %#04x where a message is due", uint16(h.Flags))}
			}
			m, err := wire.DecodeMessage(payload)
			if err != nil {
				return nil, &ProtocolError{Where: whereControl, Err: err}
			}
			f.consume(h)
			return m, nil
		}
		if err := f.fill(); err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return nil, fmt.Errorf("%w: %w", errNoAnswer, err)
			}
			return nil, err
		}
	}
}
