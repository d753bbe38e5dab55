package client

import (
	"context"
	"errors"
	"time"

	"felix.dev/felix/broker/wire"
)

// DefaultResumeTimeout is what SubscribeConfig.ResumeTimeout is if it is 0.
const DefaultResumeTimeout = 30 * time.Second

// SubscribeConfig shapes a Subscription. The zero value reads shard 0 from the readable end on and resumes by itself.
type SubscribeConfig struct {
	// Start is where to begin. The zero value is Latest.
	Start Start
	// Shard is the one shard that is read.
	Shard uint32
	// NoReconnect returns the reason when the event stream ends instead of resuming: *LaggedError or *LostError.
	NoReconnect bool
	// ResumeTimeout bounds the time that Next spends on getting a new event stream before it gives up with a
	// *LostError. 0: 30 s.
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
	// Broker is the address that serves it now.
	Broker string
}

// Subscribe begins to read a shard of a stream. It fails with a *CursorError if cfg.Start is not there, and with an
// *Error if the broker refuses; what may be retried is retried for Config.RequestTimeout.
func (c *Client) Subscribe(ctx context.Context, s Stream, cfg SubscribeConfig) (*Subscription, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	setDefault(&cfg.ResumeTimeout, DefaultResumeTimeout)
	t := target{stream: s, shard: cfg.Shard}
	a, err := c.attachPatiently(ctx, t, cfg)
	if err != nil {
		return nil, err
	}
	shut, shutDown := context.WithCancel(context.Background())
	sub := &Subscription{
		client: c, target: t, cfg: cfg, start: a.start, live: a.live, offs: a.hasOffsets,
		attached: a, in: a, shut: shut, shutDown: shutDown, retry: newRetry(),
		dec: decoder{id: a.id, want: a.start, known: a.hasOffsets},
	}
	if cfg.Start.kind == startAt && a.hasOffsets {
		// Offsets between what was asked for and what is delivered first are explained by the first batch, or lost.
		sub.dec.want = cfg.Start.offset
	}
	sub.position.Store(sub.dec.want)
	if !c.adopt(sub) {
		return nil, errors.Join(ErrClosed, sub.Close())
	}
	return sub, nil
}

// attachPatiently is the first attach of a subscription. It follows the cluster through a change of leaders, within the time
// of a request.
func (c *Client) attachPatiently(ctx context.Context, t target, cfg SubscribeConfig) (*attachment, error) {
	r := newRetry()
	begin := time.Now()
	addr := ""
	for {
		a, asked, err := c.attach(ctx, t, cfg.Start, addr)
		if err == nil {
			return a, nil
		}
		e, refused := errors.AsType[*Error](err)
		switch {
		case cfg.NoReconnect || !retryable(err) || ctx.Err() != nil || time.Since(begin) > c.cfg.RequestTimeout:
			return nil, err
		case isA[*ConnectError](err) && asked == "": // all addresses have been tried
			return nil, err
		case refused && e.Code == wire.CodeNotFound: // more likely a wrong name than a new one
			return nil, err
		}
		addr = c.instead(asked, err)
		if waitErr := r.wait(ctx, askedWait(err)); waitErr != nil {
			return nil, waitErr
		}
	}
}

// retryable says whether the same subscribe may succeed later.
func retryable(err error) bool {
	if isA[*ConnectError](err) {
		return true
	}
	if isA[*ProtocolError](err) || isA[*UnsupportedError](err) || isA[*CursorError](err) || isA[*tokenError](err) {
		return false
	}
	if e, ok := errors.AsType[*Error](err); ok {
		// A subscribe changes nothing, so an unknown outcome is as good as none.
		return e.Retry != wire.RetryFatal
	}
	return !errors.Is(err, ErrClosed)
}
