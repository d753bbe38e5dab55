package stream

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"felix.dev/felix/broker/seglog"
	"felix.dev/felix/broker/wire"
)

// Shard is one ordered log of a stream and everyone who reads it. All methods may
// be called from any goroutine.
type Shard struct {
	cfg Config
	log Log      // nil: memory
	rep *replica // nil: not replicated

	subsQueue atomic.Pointer[Queue] // the bounds of subscriptions to come

	mark    atomic.Uint64          // committed: readers stop here
	failed  atomic.Pointer[Error]  // the log is poisoned
	damaged atomic.Pointer[damage] // the last place where the log could not be read
	tail    *tail

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
		// leads says that a replica takes new ones.
		leads bool
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
	s := newShard(cfg)
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
	if s.log == nil && cfg.Queue.OnFull == Block {
		q := cfg.Queue
		q.Bytes = min(q.Bytes, cfg.TailBytes)
		s.subsQueue.Store(&q)
		s.tail.keep = s.blockers.oldest
	}
	s.staging.end = s.next
	s.mark.Store(s.next)
	return s, nil
}

func newShard(cfg Config) *Shard {
	s := &Shard{cfg: cfg, producers: newProducers(), closing: make(chan struct{}), tail: &tail{limit: cfg.TailBytes}, next: cfg.First}
	s.queue.idle.L = &s.queue.mu
	s.blockers.subs = make(map[*Subscription]time.Time)
	s.blockers.moved = make(chan struct{}, 1)
	s.subs.byID = make(map[uint64]*Subscription)
	s.subsQueue.Store(&s.cfg.Queue)
	return s
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

// Written is the offset after the last record that was written, committed or not: what
// lies below may have been or may yet be told to a publisher.
func (s *Shard) Written() uint64 {
	if s.log == nil || s.rep != nil { // a replica's log may hold more than it has applied again
		return s.Mark()
	}
	return max(s.Mark(), s.log.Next())
}

// Oldest is the first offset that can still be read.
func (s *Shard) Oldest() uint64 {
	if s.rep != nil {
		return max(s.rep.oldest.Load(), s.log.Oldest())
	}
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
