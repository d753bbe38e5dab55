package route

import (
	"cmp"
	"errors"
	"time"

	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/wire"
)

// codeRefused is the code of an idempotent publish that its shard refused. The reason is
// the refusal, and the wait is its number. It never leaves the brokers.
const codeRefused wire.Code = 0x8000

// maxText bounds the text of a refusal.
const maxText = 512

// ackOf is the answer to a publish of another broker. With not_leader it says who leads,
// as far as st knows.
func ackOf(id uint64, r stream.Result, st *State) wire.Ack {
	a := wire.Ack{RequestID: id, OK: r.Err == nil}
	if a.OK {
		a.HasOffset, a.Offset = true, r.Offset
		return a
	}
	a.HasCode, a.HasDetail = true, true
	if refused, ok := errors.AsType[*stream.RefusedError](r.Err); ok {
		a.Code, a.Retry = codeRefused, wire.RetryFatal
		a.Reason, a.RetryAfterMS = string(refused.Reason), cmp.Or(refused.Expected, refused.Offset)
		return a
	}
	e, ok := errors.AsType[*stream.Error](r.Err)
	if !ok {
		e = &stream.Error{Code: wire.CodeInternal, Retry: wire.RetryNow, Message: "internal error"}
	}
	a.Code, a.Retry, a.Reason = e.Code, e.Retry, e.Reason
	a.RetryAfterMS = uint64((max(e.RetryAfter, 0) + time.Millisecond - 1) / time.Millisecond)
	a.Message = e.Message[:min(len(e.Message), maxText)]
	switch {
	case errors.Is(r.Err, stream.ErrNotLeader):
		a.Code, a.Retry = wire.CodeNotLeader, wire.RetryRedirect
	case errors.Is(r.Err, stream.ErrOutcomeUnknown):
		a.Retry = wire.RetryOutcomeUnknown
	}
	if a.Code == wire.CodeNotLeader && st != nil && st.Node != "" {
		a.HasOwner, a.OwnerNode, a.OwnerAddr, a.Generation = true, st.Node, st.Addr, st.Generation
	}
	return a
}

// resultOf is what an ack says.
func resultOf(a *wire.Ack, owner *stream.Owner) stream.Result {
	switch {
	case a.OK:
		return stream.Result{Offset: a.Offset, Owner: owner}
	case a.Code == codeRefused:
		e := &stream.RefusedError{Reason: stream.Refusal(a.Reason)}
		switch e.Reason {
		case stream.SequenceGap:
			e.Expected = a.RetryAfterMS
		case stream.SequenceReused:
			e.Offset = a.RetryAfterMS
		case stream.SequenceExpired, stream.UnknownProducer:
		}
		return stream.Result{Err: e}
	}
	e := &stream.Error{
		Code: a.Code, Retry: a.Retry, Reason: a.Reason, Message: a.Message,
		RetryAfter: time.Duration(a.RetryAfterMS) * time.Millisecond,
	}
	if !a.HasCode { // nobody but this package's Receiver answers here
		e.Code, e.Retry = wire.CodeInternal, wire.RetryOutcomeUnknown
	}
	return stream.Result{Err: e}
}

// hintOf is who an owner says is the owner now; zero: it does not say.
func hintOf(a *wire.Ack) State {
	if a.OK || !a.HasOwner {
		return State{}
	}
	return State{Node: a.OwnerNode, Addr: a.OwnerAddr, Generation: a.Generation}
}
