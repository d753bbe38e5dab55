package replica

import (
	"errors"
	"fmt"
	"time"

	"felix.dev/felix/broker/quorum"
	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/wire"
)

var (
	// ErrNoShard is a shard that the group does not have, or does not have here yet.
	ErrNoShard = errors.New("replica: the group has no such shard")
	// ErrClosed is a group that is closed.
	ErrClosed = errors.New("replica: the group is closed")
	// errLacking is a log that ends before the records that its shard is known to have.
	errLacking = errors.New("replica: records are missing and must be fetched from another broker")
)

// notLeading refuses what only the leader takes; nothing was written.
func notLeading(err error) *stream.Error {
	return &stream.Error{
		Code: wire.CodeShardUnavailable, Retry: wire.RetryNow, Reason: stream.ReasonMoving,
		Message: "another broker leads the shard, or will in a moment", Err: errors.Join(stream.ErrNotLeader, err),
	}
}

// storageRefusal refuses a publish because this broker's storage does not work.
func storageRefusal(err error) *stream.Error {
	return &stream.Error{
		Code: wire.CodeStorage, Retry: wire.RetryAfter, RetryAfter: time.Second,
		Message: "the leader's storage does not take writes now; nothing was written", Err: err,
	}
}

func busy(what string, err error) *stream.Error {
	return &stream.Error{Code: wire.CodeOverloaded, Retry: wire.RetryAfter, RetryAfter: 50 * time.Millisecond, Message: what, Err: err}
}

func tooLarge(size, limit int) *stream.Error {
	return &stream.Error{
		Code: wire.CodeLimitExceeded, Retry: wire.RetryFatal,
		Message: fmt.Sprintf("a publish to a Quorum stream may be %d bytes, not %d", limit, size),
	}
}

func unknownOutcome(err error) *stream.Error {
	return &stream.Error{
		Code: wire.CodeLeadershipLost, Retry: wire.RetryOutcomeUnknown,
		Message: "the write was handed to the replicas and nobody knows yet whether it is committed", Err: errors.Join(stream.ErrOutcomeUnknown, err),
	}
}

// publishError is what a publish is told of its entry's failure.
func publishError(err error) *stream.Error {
	switch {
	case errors.Is(err, quorum.ErrNotLeader), errors.Is(err, quorum.ErrClosed):
		return notLeading(err)
	case errors.Is(err, quorum.ErrStuck):
		return storageRefusal(err)
	case errors.Is(err, quorum.ErrBusy):
		return busy("too much is under way to the replicas; nothing was written", err)
	case errors.Is(err, quorum.ErrTooLarge):
		return &stream.Error{Code: wire.CodeLimitExceeded, Retry: wire.RetryFatal, Message: "the publish is larger than the replicas take", Err: err}
	}
	return unknownOutcome(err)
}

// changeError is what a change of a shard is told of its entry's failure.
func changeError(what string, key ShardKey, err error) error {
	if errors.Is(err, quorum.ErrNotLeader) || errors.Is(err, quorum.ErrClosed) {
		err = errors.Join(stream.ErrNotLeader, err)
	}
	return fmt.Errorf("replica: %s shard %s: %w", what, key, err)
}
