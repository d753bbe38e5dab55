package route

import (
	"cmp"
	"errors"
	"time"

	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/wire"
)

// overloadRetry is when a publisher that found no room may come again.
const overloadRetry = 250 * time.Millisecond

func overloaded(message string) *stream.Error {
	return &stream.Error{
		Code: wire.CodeOverloaded, Retry: wire.RetryAfter, Reason: "publish_queue_full", RetryAfter: overloadRetry, Message: message,
	}
}

func notFound() *stream.Error {
	return &stream.Error{
		Code: wire.CodeNotFound, Retry: wire.RetryAfter, RetryAfter: time.Second, Message: "the stream was deleted", Err: stream.ErrClosed,
	}
}

func draining() *stream.Error {
	return &stream.Error{Code: wire.CodeDraining, Retry: wire.RetryNow, Message: "the broker is shutting down", Err: stream.ErrClosed}
}

// unavailable is the end of a hold: nothing was written.
func unavailable(reason string) *stream.Error {
	return &stream.Error{
		Code: wire.CodeShardUnavailable, Retry: wire.RetryNow, Reason: cmp.Or(reason, stream.ReasonNotReady),
		Message: "no broker took the publish in time; nothing was written",
	}
}

// unknown is for what was sent to an owner that did not answer.
func unknown(message string) *stream.Error {
	return &stream.Error{
		Code: wire.CodeUnacknowledged, Retry: wire.RetryOutcomeUnknown, Message: message, Err: stream.ErrOutcomeUnknown,
	}
}

func isRefused(err error) bool {
	_, ok := errors.AsType[*stream.RefusedError](err)
	return ok
}

// verdict is what becomes of a publish that was refused.
type verdict uint8

const (
	final  verdict = iota // the publisher is told
	again                 // nothing was written: another broker takes it, or this one in a moment
	unsure                // it may have been written: again if that is harmless
)

// judge says what a refusal means for one publish. What the shard of this broker says is
// the last word on the stream and on the broker; another broker may only be behind, or
// be leaving.
func judge(err error, remote bool) verdict {
	e, ok := errors.AsType[*stream.Error](err)
	switch {
	case !ok:
		return final
	case errors.Is(err, stream.ErrNotLeader):
		return again
	case errors.Is(err, stream.ErrOutcomeUnknown):
		return unsure
	}
	switch e.Code {
	case wire.CodeNotLeader, wire.CodeShardUnavailable:
		return again
	case wire.CodeNotFound, wire.CodeDraining:
		if remote {
			return again
		}
	case wire.CodeQuorumTimeout, wire.CodeLeadershipLost, wire.CodeUnacknowledged:
		if e.Retry == wire.RetryOutcomeUnknown {
			return unsure
		}
		return again
	default:
	}
	return final
}

// expired is what the publisher of e is told when its time is over.
func (e *entry) expired(reason string) error {
	if e.maybe {
		return unknown("the brokers that may have written it did not say so in time")
	}
	if last, ok := errors.AsType[*stream.Error](e.last); ok && last.Code == wire.CodeNotFound {
		return last
	}
	return unavailable(reason)
}
