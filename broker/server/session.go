package server

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"github.com/quic-go/quic-go"

	"felix.dev/felix/broker/auth"
	"felix.dev/felix/broker/metrics"
	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/wire"
	"felix.dev/felix/broker/wire/frameio"
)

const (
	readBuffer = 4 << 10
	// smallMessage is what a JSON frame may have without being counted: larger ones
	// are publishes.
	smallMessage = largeFrame
)

// errNotFelix is a peer that speaks another protocol.
var errNotFelix = errors.New("server: not a felix stream")

// incoming is the receiving side of a client's stream.
type incoming interface {
	io.Reader
	CancelRead(quic.StreamErrorCode)
}

// session reads one client stream. It belongs to the goroutine in run, but for out
// and what publishing uses of it, which do not change once authenticated.
type session struct {
	srv    *Server
	conn   *connection
	in     incoming
	out    *answers // nil: a unidirectional stream, which is never answered
	id     uint64   // of the QUIC stream
	frames *frameio.Reader

	principal *auth.Principal // nil until authenticated
	offer     wire.Offer
	routes    routes
	patience  patience
}

func newSession(c *connection, in incoming, out answerStream, id uint64) *session {
	s := &session{
		srv: c.srv, conn: c, in: in, id: id,
		frames:   frameio.NewReader(in, readBuffer),
		patience: patience{limit: c.srv.cfg.PublishIngressWait, gone: c.ctx.Done()},
	}
	if out != nil {
		s.out = newAnswers(out, c.srv.cfg.MaxUnanswered, c.srv.cfg.AnswerTimeout, &c.srv.owed, func() { in.CancelRead(0) })
	}
	return s
}

func (s *session) run() {
	stop := context.AfterFunc(s.conn.ctx, func() { s.out.fail(context.Cause(s.conn.ctx)) })
	defer stop()
	defer s.patience.stop()
	err := s.loop()
	var end *fatalError
	switch {
	case errors.As(err, &end):
		s.srv.log.Debug("stream refused", slog.String("remote", s.conn.remote), slog.Uint64("stream", s.id), slog.Any("error", err))
		if s.principal == nil {
			s.rejected(end.refusal.Code)
		}
		s.out.settleAll()                                    // a client fails what is outstanding when it meets an error
		_ = s.out.send(errorMessage(end.refusal, s.codes())) // a stream that is gone needs no answer
	case errors.Is(err, errNotFelix) && s.principal == nil:
		s.rejected(wire.CodeInvalidRequest)
		if s.id <= firstUniStream { // of the connection
			s.conn.close(closeNotFelix, "not a felix connection")
		}
	}
	s.in.CancelRead(0) // nothing if the end was read
	s.out.finish()
}

// firstUniStream is the id of the first unidirectional stream of a client; the
// first bidirectional one has 0.
const firstUniStream = 2

func (s *session) rejected(code wire.Code) {
	var reason metrics.RejectReason
	switch code {
	case wire.CodeDraining:
		reason = metrics.RejectDraining
	case wire.CodeUnauthenticated:
		reason = metrics.RejectAuth
	default:
		reason = metrics.RejectProtocol
	}
	s.srv.m.Sessions.Rejected.With(reason).Inc()
}

// codes says whether the client reads error codes in JSON.
func (s *session) codes() bool { return s.offer.Features.Has(wire.FeatureErrorCodes) }

// loop reads frames until the stream ends; io.EOF is the client's FIN.
func (s *session) loop() error {
	for {
		h, err := s.frames.Next()
		if err != nil {
			return s.headerError(h, err)
		}
		if err := s.frame(h); err != nil {
			return err
		}
	}
}

func (s *session) headerError(h wire.Header, err error) error {
	if tooLarge, ok := errors.AsType[*wire.TooLargeError](err); ok {
		return fatal(wire.CodeInvalidRequest, "%v", tooLarge)
	}
	if unknown, ok := errors.AsType[*wire.UnknownFlagsError](err); ok {
		if err := s.frames.Skip(h); err != nil {
			return err
		}
		return fatal(wire.CodeInvalidRequest, "%v", unknown)
	}
	if errors.Is(err, wire.ErrMalformed) {
		return errors.Join(errNotFelix, err)
	}
	return err
}

func (s *session) frame(h wire.Header) error {
	kind, err := h.Kind()
	if err != nil {
		if err := s.frames.Skip(h); err != nil {
			return err
		}
		return fatal(wire.CodeInvalidRequest, "%v", err)
	}
	if kind == wire.KindMessage || h.Flags.Has(wire.FlagPublishAcked) {
		s.out.await()
	}
	switch {
	case kind == wire.KindMessage:
		return s.messageFrame(h)
	case s.principal == nil:
		return fatal(wire.CodeUnauthenticated, "the first frame of a stream must be auth")
	case kind == wire.KindPublish:
		return s.publishFrame(h)
	default:
		return fatal(wire.CodeInvalidRequest, "a client does not send %s frames", kind)
	}
}

func (s *session) messageFrame(h wire.Header) error {
	m, err := s.readMessage(h)
	if err != nil {
		return err
	}
	if a, ok := m.(*wire.Auth); ok {
		return s.authenticate(a)
	}
	if s.principal == nil {
		return fatal(wire.CodeUnauthenticated, "the first frame of a stream must be auth")
	}
	switch m := m.(type) {
	case *wire.PublishJSON:
		return s.publishJSON(m)
	case *wire.PublishBatchJSON:
		return s.publishBatchJSON(m)
	case *wire.PublishIdempotent:
		return s.publishIdempotent(m)
	}
	if s.out == nil {
		return fatal(wire.CodeInvalidRequest, "%s cannot be answered on a unidirectional stream", m.MessageType())
	}
	return s.request(m)
}

// request serves what is neither auth nor a publish.
func (s *session) request(m wire.Message) error {
	switch m := m.(type) {
	case *wire.ProducerInit:
		return s.producerInit(m)
	case *wire.Subscribe:
		return s.subscribe(m)
	case *wire.Topology:
		return s.topology()
	case *wire.StreamShards:
		return s.streamShards(m)
	case *wire.ShardOwners:
		return s.shardOwners(m)
	case *wire.Extension, *wire.Unknown:
		return s.unsupported(m)
	}
	return fatal(wire.CodeInvalidRequest, "a client does not send %s", m.MessageType())
}

func (s *session) readMessage(h wire.Header) (wire.Message, error) {
	if h.Length > smallMessage {
		cost := frameCost(h.Length)
		forever := patience{gone: s.conn.ctx.Done()}
		if !s.conn.arriving.acquire(cost, &forever) {
			return nil, context.Cause(s.conn.ctx)
		}
		defer s.conn.arriving.release(cost)
	}
	buf, err := readPayload(s.frames, h)
	defer buf.Give()
	if err != nil {
		return nil, err
	}
	m, err := wire.DecodeMessage(buf.B)
	if err != nil {
		return nil, fatal(wire.CodeInvalidRequest, "%v", err)
	}
	return m, nil
}

// answer writes the answer to a request. A client that is done with the stream
// needs none, so that this is not the end of it: reading says when that is.
func (s *session) answer(m wire.Message) {
	if err := s.out.send(m); err != nil {
		s.srv.log.Debug("answer not sent", slog.String("remote", s.conn.remote), slog.Any("error", err))
	}
}

// refuseRequest answers a request that failed; the stream goes on.
func (s *session) refuseRequest(e *stream.Error) { s.answer(errorMessage(e, s.codes())) }
