package client

import (
	"context"
	"errors"
	"time"
)

// SubscribeConfig shapes a Subscription. The zero value reads shard 0 from the readable end on and resumes by itself.
type SubscribeConfig struct {
	// Start is where to begin. The zero value is Latest.
	Start Start
	// Shard is the one shard that is read.
	Shard uint32
	// NoReconnect returns the reason when the event stream ends instead of resuming: *LaggedError or *LostError.
	NoReconnect bool
	// ResumeTimeout bounds the time without a working event stream before Next gives up. 0: 30 s.
	ResumeTimeout time.Duration
	// SkipLost goes on at the oldest retained record if the position to resume from is not retained any more, and
	// reports the distance as Event.Gap. Otherwise Next returns the *CursorError.
	SkipLost bool

	// OnLagged is called when the broker has ended the event stream because the reader was too slow. The
	// subscription then resumes at position, unless NoReconnect is set. nil: not reported.
	OnLagged func(resumeFrom, position uint64)
	// OnLost is called when the event stream ended in any other way that is resumed, with the reason. nil: not
	// reported.
	OnLost func(err error)
	// OnResumed is called when the subscription goes on after OnLagged or OnLost. nil: not reported.
	OnResumed func(r Resumed)
	// OnGap is called when offsets [from, to) are missing and nothing explains them; see Event.Gap. nil: only
	// Event.Gap tells.
	OnGap func(from, to uint64)
}

// Resumed says how a subscription went on.
type Resumed struct {
	// Position is the offset it went on from.
	Position uint64
	// Down is the time since the event stream ended.
	Down time.Duration
	// Attempts counts the subscribe requests it took.
	Attempts int
}

// Subscription reads one shard of a stream in order.
type Subscription struct{}

// Subscribe begins to read a shard of a stream.
func (c *Client) Subscribe(ctx context.Context, s Stream, cfg SubscribeConfig) (*Subscription, error) {
	return nil, errors.ErrUnsupported
}

// Next returns the next event. The payload is the caller's to keep.
func (s *Subscription) Next(ctx context.Context) (Event, error) { return Event{}, errors.ErrUnsupported }

// NextBatch returns the events that are there, at least one, without copying them. The slice and the payloads are
// valid until the next call of Next or NextBatch.
func (s *Subscription) NextBatch(ctx context.Context) ([]Event, error) { return nil, errors.ErrUnsupported }

// Position is the first offset that was not returned yet: where to subscribe again to go on.
func (s *Subscription) Position() uint64 { return 0 }

// StartOffset is the first offset this subscription delivers, as the broker said when it began.
func (s *Subscription) StartOffset() uint64 { return 0 }

// LiveOffset is the readable end when the subscription began: what is below it is history.
func (s *Subscription) LiveOffset() uint64 { return 0 }

// HasOffsets is false for a stream without a log; it then has no position and cannot be resumed.
func (s *Subscription) HasOffsets() bool { return false }

// Close ends the subscription. It may be called while another goroutine waits in Next, which then returns ErrClosed.
func (s *Subscription) Close() error { return nil }
