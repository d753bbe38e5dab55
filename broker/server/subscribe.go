package server

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/quic-go/quic-go"

	"felix.dev/felix/broker/auth"
	"felix.dev/felix/broker/egress"
	"felix.dev/felix/broker/metrics"
	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/wire"
)

// subscribe sets a subscription up in the order that the client relies on:
// register, open the event stream and write its hello, answer on the control
// stream, and only then let events flow. From the registration on the subscription
// is independent of the control stream.
func (s *session) subscribe(m *wire.Subscribe) error {
	if s.srv.draining.Load() {
		s.refuseRequest(draining())
		return nil
	}
	place, refusal := s.subscribedPlace(m)
	if refusal != nil {
		s.refuseRequest(refusal)
		return nil
	}
	shard, elsewhere := place.Here()
	if shard == nil {
		s.sendElsewhere(elsewhere)
		return nil
	}
	engine, ok := s.conn.addSubscription()
	if !ok {
		s.refuseRequest(refuse(wire.CodeLimitExceeded, "the connection has %d subscriptions already", s.srv.cfg.MaxSubscriptions))
		return nil
	}
	sub, err := shard.Subscribe(s.subscribeOptions(m))
	if err != nil {
		s.conn.removeSubscription()
		s.refuseSubscribe(place, err)
		return nil
	}
	out, refusal := s.openEventStream(sub.ID())
	if refusal != nil {
		sub.Close()
		s.conn.removeSubscription()
		s.refuseRequest(refusal)
		return nil
	}
	s.srv.m.Subscriptions.Started.Inc()
	s.answer(s.subscribed(sub))
	s.conn.tasks.Add(1)
	s.srv.streamsOpen.Add(1)
	conn := s.conn // not s: the subscription outlives the session and its buffers
	s.srv.cfg.Egress.Start(engine, sub, out, func(end stream.End) {
		conn.subscriptionOver(sub, end)
	})
	return nil
}

func (s *session) subscribedPlace(m *wire.Subscribe) (stream.Place, *stream.Error) {
	st, refusal := s.find(auth.StreamSubscribe, stream.Name{Tenant: m.TenantID, Namespace: m.Namespace, Stream: m.Stream})
	if refusal != nil {
		return nil, refusal
	}
	var i uint32
	if m.Shard != nil {
		i = *m.Shard
	}
	place, ok := st.Place(i)
	if !ok {
		return nil, refuse(wire.CodeInvalidRequest, "there is no shard %d: the stream has %d", i, len(st.Places()))
	}
	return place, nil
}

func (s *session) subscribeOptions(m *wire.Subscribe) stream.SubscribeOptions {
	o := stream.SubscribeOptions{
		ID:        s.srv.subIDs.Add(1),
		Offsets:   s.offer.Flags.Has(wire.FlagEventOffsets),
		Skips:     s.offer.Flags.Has(wire.FlagEventOffsets | wire.FlagEventSkipped),
		Lagged:    s.offer.Flags.Has(wire.FlagEventOffsets) && s.offer.Features.Has(wire.FeatureSubscriptionLagged),
		Moved:     s.offer.Features.Has(wire.FeatureShardMoved),
		Conn:      s.conn.remote,
		Principal: principalLabel(s.principal.Tenant, s.principal.Subject),
	}
	if m.Start != nil {
		o.Start = *m.Start
	}
	return o
}

// refuseSubscribe answers a subscribe that the shard in place p did not take.
func (s *session) refuseSubscribe(p stream.Place, err error) {
	if errors.Is(err, stream.ErrNotLeader) { // it has moved since it was looked for
		s.sendElsewhere(gone(p))
		return
	}
	if cursor, ok := errors.AsType[*stream.CursorError](err); ok {
		s.answer(&wire.SubscribeCursorError{
			Reason: string(cursor.Reason), Requested: cursor.Requested, Available: cursor.Available,
		})
		return
	}
	s.refuseRequest(asRefusal(err))
}

func (s *session) subscribed(sub *stream.Subscription) *wire.Subscribed {
	m := &wire.Subscribed{SubscriptionID: sub.ID()}
	if s.offer.Flags.Has(wire.FlagEventOffsets) {
		start, live := sub.StartOffset(), sub.LiveOffset()
		m.StartOffset, m.LiveOffset = &start, &live
	}
	return m
}

// openEventStream opens the subscription's stream and writes its hello, which the
// client waits for before it takes its next event stream.
func (s *session) openEventStream(id uint64) (*eventStream, *stream.Error) {
	ctx, cancel := context.WithTimeout(s.conn.ctx, s.srv.cfg.EventStreamWait)
	defer cancel()
	out, err := s.conn.quic.OpenUniStreamSync(ctx)
	if err != nil {
		return nil, refuseAfter(wire.CodeOverloaded, "event_streams", s.srv.cfg.OverloadRetry,
			"the client allows no more event streams on this connection")
	}
	deadline, _ := ctx.Deadline()
	_ = out.SetWriteDeadline(deadline) // it has no error
	if _, err := out.Write(wire.AppendMessage(nil, &wire.EventStreamHello{SubscriptionID: id})); err != nil {
		out.CancelWrite(egress.ResetLost)
		return nil, refuseAfter(wire.CodeOverloaded, "event_streams", s.srv.cfg.OverloadRetry,
			"the client's connection window has no room for another event stream")
	}
	_ = out.SetWriteDeadline(time.Time{})
	return &eventStream{SendStream: out, conn: s.conn}, nil
}

// subscriptionOver is called once for each subscription that was started.
func (c *connection) subscriptionOver(sub *stream.Subscription, end stream.End) {
	reason := c.endReason(end)
	c.srv.m.Subscriptions.Ended.With(reason).Inc()
	level, text := endLine(reason)
	i := sub.Info()
	attrs := []slog.Attr{
		slog.Uint64("subscription", i.ID), slog.String("stream", i.Stream.String()), slog.Uint64("shard", uint64(i.Shard)),
		slog.String("remote", c.remote), slog.String("principal", i.Principal), slog.String("reason", string(reason)),
		slog.Uint64("offset", end.Next), slog.Uint64("behind", i.Mark-min(end.Next, i.Mark)),
		slog.Duration("age", time.Since(i.Since).Truncate(time.Millisecond)),
	}
	if end.Err != nil {
		attrs = append(attrs, slog.Any("error", end.Err))
	}
	c.srv.log.LogAttrs(context.Background(), level, text, attrs...) // c.ctx may be over
	c.removeSubscription()
	c.srv.streamsOpen.Add(-1)
	c.tasks.Done()
}

// endLine is how the end of a subscription is logged: a reader that lost its place,
// and why, is somebody's problem; what a client or an operator has done is not.
func endLine(reason metrics.EndReason) (slog.Level, string) {
	switch reason {
	case metrics.EndLagged:
		return slog.LevelWarn, "subscription ended: its reader is too slow and passed its lag bound; it may resume at the offset"
	case metrics.EndSlow:
		return slog.LevelWarn, "subscription ended: its reader took nothing for the slow-consumer timeout; it may resume at the offset"
	case metrics.EndTooOld:
		return slog.LevelWarn, "subscription ended: retention has removed what its reader needs next"
	case metrics.EndStorage:
		return slog.LevelError, "subscription ended: the log cannot be read on"
	case metrics.EndAdmin:
		return slog.LevelInfo, "subscription ended by an operator"
	default:
		return slog.LevelDebug, "subscription over"
	}
}

func (c *connection) endReason(end stream.End) metrics.EndReason {
	switch end.Reason {
	case stream.EndCancelled:
		// A connection's streams end a moment before its context; only a client that
		// cancels the stream itself leaves an error of the stream.
		var cancelled *quic.StreamError
		if c.ctx.Err() != nil || end.Err != nil && !errors.As(end.Err, &cancelled) {
			return metrics.EndConnection
		}
		return metrics.EndClient
	case stream.EndLagged:
		return metrics.EndLagged
	case stream.EndTooOld:
		return metrics.EndTooOld
	case stream.EndCorrupt, stream.EndFailed:
		return metrics.EndStorage
	case stream.EndDeleted:
		return metrics.EndDeleted
	case stream.EndShutdown:
		return metrics.EndShutdown
	case stream.EndRemoved:
		return metrics.EndAdmin
	case stream.EndSlow:
		return metrics.EndSlow
	case stream.EndMoved:
		return metrics.EndMoved
	case stream.EndDeposed:
		return metrics.EndDeposed
	}
	return metrics.EndReason(end.Reason.String())
}
