package server

import (
	"context"
	"errors"
	"log/slog"

	"felix.dev/felix/broker/auth"
	"felix.dev/felix/broker/metrics"
	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/wire"
)

// authenticate serves the first frame of a stream.
func (s *session) authenticate(m *wire.Auth) error {
	if s.principal != nil {
		return fatal(wire.CodeInvalidRequest, "the stream has authenticated already")
	}
	// Whether a refusal may carry a code is said in the very message that is refused.
	s.offer.Features = m.ClientFeatures
	if s.srv.draining.Load() {
		return &fatalError{draining()}
	}
	ctx, cancel := context.WithTimeout(s.conn.ctx, s.srv.cfg.AuthTimeout)
	defer cancel()
	p, err := s.srv.cfg.Auth.Verify(ctx, m.TenantID, m.Token)
	if err != nil {
		return s.refuseToken(err)
	}
	s.srv.m.Sessions.Auth.With(metrics.AuthOK).Inc()
	s.principal, s.offer = p, m.Offer()
	s.frames.SetLimit(wire.MaxPayload)
	s.conn.authenticate()
	if !s.offer.Negotiated {
		s.answer(&wire.OK{})
		return nil
	}
	s.answer(&wire.AuthOK{ServerFlags: s.srv.flags(), ServerFeatures: serverFeatures})
	return nil
}

func (s *session) refuseToken(err error) error {
	refused, ok := errors.AsType[*auth.Error](err)
	if !ok { // nothing was decided: another attempt may be
		s.srv.log.Warn("token could not be checked", slog.String("remote", s.conn.remote), slog.Any("error", err))
		return &fatalError{&stream.Error{
			Code: wire.CodeInternal, Retry: wire.RetryNow, Message: "the token could not be checked", Err: err,
		}}
	}
	s.srv.m.Sessions.Auth.With(metrics.AuthResult(refused.Reason)).Inc()
	// The reason is for the broker's log: a stranger learns nothing from it.
	s.srv.log.Info("token refused", slog.String("remote", s.conn.remote), slog.String("reason", string(refused.Reason)))
	return &fatalError{&stream.Error{
		Code: wire.CodeUnauthenticated, Retry: wire.RetryFatal, Message: "auth failed", Err: err,
	}}
}
