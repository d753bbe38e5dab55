package stream

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"felix.dev/felix/broker/seglog"
	"felix.dev/felix/broker/wire"
)

const (
	diskRetry    = time.Second
	blockedRetry = 250 * time.Millisecond
)

// Config is what one shard is opened with. Zero values are the documented defaults.
type Config struct {
	Name  Name
	Shard uint32
	// TailBytes bounds the ring of newest batches (64 MiB).
	TailBytes int64
	// Queue bounds the lag of a subscription (4096 entries, 128 MiB, DropNew). Of a
	// memory shard under Block it is at most TailBytes, because the ring then keeps
	// what a reader still needs.
	Queue Queue
	// BlockTimeout is how long a subscription may hold publishers up under Block
	// before it is ended as lagged (30 s).
	BlockTimeout time.Duration
	// PublishWait is how long one publish is held up under Block before it is
	// refused; it is below every client's patience (10 s).
	PublishWait time.Duration
	// PollInterval bounds what a lost wake-up costs (5 s).
	PollInterval time.Duration
	// BatchEvents and BatchBytes bound the frame that small publishes share (64, 256 KiB).
	BatchEvents int
	BatchBytes  int
	// First is the first offset of a memory shard: above all that was ever used
	// under its name.
	First uint64
	// Reserve, for memory shards, makes sure that offsets below upTo are never used
	// again, however the broker ends, and gives the mark up to which that now holds.
	// It is called before the first offset at a mark is handed out.
	Reserve func(upTo uint64) (mark uint64, err error)
	// Now and Jitter (in [0,1)) are the clock and the randomness.
	Now    func() time.Time
	Jitter func() float64
}

func (c *Config) setDefaults() {
	if c.TailBytes == 0 {
		c.TailBytes = 64 << 20
	}
	if c.Queue.Entries == 0 {
		c.Queue.Entries = 4096
	}
	if c.Queue.Bytes == 0 {
		c.Queue.Bytes = 128 << 20
	}
	if c.BlockTimeout == 0 {
		c.BlockTimeout = 30 * time.Second
	}
	if c.PublishWait == 0 {
		c.PublishWait = 10 * time.Second
	}
	if c.PollInterval == 0 {
		c.PollInterval = 5 * time.Second
	}
	if c.BatchEvents == 0 {
		c.BatchEvents = 64
	}
	if c.BatchBytes == 0 {
		c.BatchBytes = 256 << 10
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Jitter == nil {
		c.Jitter = rand.Float64
	}
}

// Validate reports every problem of c at once.
func (c *Config) Validate() error {
	var errs []error
	bad := func(what string, v any) { errs = append(errs, fmt.Errorf("stream: %s: %v is out of range", what, v)) }
	if c.TailBytes < 0 {
		bad("tail bytes", c.TailBytes)
	}
	if c.Queue.Entries < 0 || c.Queue.Entries > 1<<20 {
		bad("queue entries", c.Queue.Entries)
	}
	if c.Queue.Bytes < 0 {
		bad("queue bytes", c.Queue.Bytes)
	}
	if c.BlockTimeout < 0 || c.PublishWait < 0 || c.PollInterval < 0 {
		bad("a timeout", min(c.BlockTimeout, c.PublishWait, c.PollInterval))
	}
	if c.BatchEvents < 0 || c.BatchBytes < 0 || c.BatchBytes > wire.MaxRecordsBytes {
		bad("batch bounds", fmt.Sprintf("%d events, %d bytes", c.BatchEvents, c.BatchBytes))
	}
	return errors.Join(errs...)
}

// Hooks are what a log calls: the shard's side of seglog.Config.
type Hooks struct {
	Committed     func(next uint64, err error)
	OnRecover     func(seglog.Record)
	RestoreState  func([]byte) error
	SnapshotState func() []byte
}

// Shard is one ordered log of a stream and everyone who reads it. All methods may
// be called from any goroutine.
type Shard struct {
	cfg Config
	log Log // nil: memory

	mark   atomic.Uint64         // committed: readers stop here
	failed atomic.Pointer[Error] // the log is poisoned
	tail   *tail

	queue queue

	// The sequencer's own: whoever holds queue.running.
	next      uint64 // offset of the next record
	reserved  uint64 // memory: offsets below may be handed out
	staging   staging
	producers *producers

	done []*claim // the committer's scratch

	watchers watchers
	blockers blockers
	blocked  atomic.Uint64 // publishes refused because a reader blocked them
	dropped  atomic.Uint64 // records that readers were not sent, those of before included

	subs struct {
		mu   sync.Mutex
		byID map[uint64]*Subscription
		end  EndReason // non-zero: no new ones
	}

	closing chan struct{}
	once    sync.Once
	tasks   sync.WaitGroup
}

// Open makes a shard over the log that openLog opens with the shard's hooks; a nil
// openLog makes a memory shard.
func Open(cfg Config, openLog func(Hooks) (Log, error)) (*Shard, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.setDefaults()
	s := &Shard{cfg: cfg, producers: newProducers(), closing: make(chan struct{})}
	s.queue.idle.L = &s.queue.mu
	s.blockers.subs = make(map[*Subscription]time.Time)
	s.blockers.moved = make(chan struct{}, 1)
	s.subs.byID = make(map[uint64]*Subscription)
	s.next = cfg.First
	if openLog != nil {
		log, err := openLog(Hooks{
			Committed: s.logCommitted, OnRecover: s.recovered,
			RestoreState: s.producers.restore, SnapshotState: s.producers.snapshot,
		})
		if err != nil {
			return nil, err
		}
		s.log, s.next = log, log.Next()
	} else if cfg.Queue.OnFull == CatchUp {
		return nil, errors.New("stream: OnFull CatchUp needs a log: a memory stream has none")
	}
	s.tail = &tail{limit: cfg.TailBytes}
	if s.log == nil && cfg.Queue.OnFull == Block {
		s.cfg.Queue.Bytes = min(cfg.Queue.Bytes, cfg.TailBytes)
		s.tail.keep = s.blockers.oldest
	}
	s.staging.end = s.next
	s.mark.Store(s.next)
	return s, nil
}

// recovered rebuilds what the log remembers of idempotent producers.
func (s *Shard) recovered(r seglog.Record) {
	if !r.HasProducer || len(r.Frame) < wire.OffsetFrameOverhead {
		return
	}
	records := wire.Records{Count: r.Count, Bytes: r.Frame[wire.OffsetFrameOverhead:]}
	s.producers.record(r.Producer, r.Sequence, batchMark{r.Base, r.Count, digestOf(records)})
}

// StartGeneration appends a generation-start record: it takes one offset, is never
// delivered, and shows as skipped_before. done is called like Publish.Done.
func (s *Shard) StartGeneration(body []byte, done func(Result)) {
	s.Publish(&Publish{hidden: true, Records: wire.Records{Count: 1, Bytes: body}, Done: done})
}

// refusing says why nothing may be appended, or nil.
func (s *Shard) refusing() error {
	if e := s.failed.Load(); e != nil {
		return &Error{Code: wire.CodeStorage, Retry: wire.RetryAfter, RetryAfter: diskRetry, Message: "the log failed and must be reopened; nothing was written", Err: e.Err}
	}
	return nil
}

// Mark is the committed mark: the offset after the last readable record.
func (s *Shard) Mark() uint64 { return s.mark.Load() }

// Oldest is the first offset that can still be read.
func (s *Shard) Oldest() uint64 {
	if s.log != nil {
		return s.log.Oldest()
	}
	if o, ok := s.tail.oldest(); ok {
		return o
	}
	return s.cfg.First
}

// ShardInfo is a shard at a glance.
type ShardInfo struct {
	Oldest, Mark        uint64
	LogBytes, TailBytes int64
	Subscriptions       int
	Blocked             uint64 // publishes refused because a subscriber blocked them
	Dropped             uint64 // records that subscriptions were not sent, since it was opened
	Err                 error  // the log is poisoned
}

// Info describes the shard.
func (s *Shard) Info() ShardInfo {
	i := ShardInfo{Oldest: s.Oldest(), Mark: s.Mark(), TailBytes: s.tail.bytes(), Blocked: s.blocked.Load(), Dropped: s.dropped.Load()}
	if s.log != nil {
		i.LogBytes = s.log.Stats().Bytes
	}
	s.subs.mu.Lock()
	i.Subscriptions = len(s.subs.byID)
	s.subs.mu.Unlock()
	if e := s.failed.Load(); e != nil {
		i.Err = e
	}
	return i
}

// Close ends a shard: publishes are refused, what was accepted is finished as long
// as ctx lasts, and subscriptions are told: they deliver what is committed, then
// end with reason. When ctx is over, what was not yet given to the log is refused,
// and what was is answered when the log commits or is closed. Close waits for the
// shard's own goroutines, so for an append under way, not for readers.
func (s *Shard) Close(ctx context.Context, reason EndReason) error {
	var err error
	s.once.Do(func() {
		q := &s.queue
		stop := context.AfterFunc(ctx, func() {
			q.mu.Lock()
			defer q.mu.Unlock()
			q.idle.Broadcast()
		})
		defer stop()
		q.mu.Lock()
		q.closed = closedError(reason)
		close(s.closing)
		var late []*Publish
		for q.running || len(q.waiting) > 0 || (len(q.inflight) > 0 && ctx.Err() == nil) {
			switch {
			case ctx.Err() != nil && len(q.waiting) > 0:
				late = append(late, q.waiting...)
				q.waiting, q.bytes = nil, 0
			case len(q.waiting) > 0 && !q.running:
				q.running = true
				q.mu.Unlock()
				s.sequence(false)
				q.mu.Lock()
			default:
				q.idle.Wait()
			}
		}
		if len(q.inflight) > 0 {
			err = fmt.Errorf("stream: %s shard %d: closed with unconfirmed writes: %w", s.cfg.Name, s.cfg.Shard, context.Cause(ctx))
		}
		q.mu.Unlock()
		for _, p := range late {
			p.Done(Result{Err: closedError(reason)})
		}
		s.tasks.Wait() // nothing runs and nothing waits, so that nobody starts another
		s.endSubscriptions(reason)
	})
	return err
}

// CloseLog closes the shard's log once its readers are gone.
func (s *Shard) CloseLog() error {
	if s.log == nil {
		return nil
	}
	return s.log.Close()
}

func closedError(reason EndReason) *Error {
	if reason == EndDeleted {
		return &Error{Code: wire.CodeNotFound, Retry: wire.RetryAfter, RetryAfter: diskRetry, Message: "the stream was deleted", Err: ErrClosed}
	}
	return &Error{Code: wire.CodeDraining, Retry: wire.RetryNow, Message: "the broker is shutting down", Err: ErrClosed}
}
