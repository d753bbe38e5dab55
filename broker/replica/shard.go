package replica

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"felix.dev/felix/broker/stream"
)

// shard is one shard of a group on this broker.
type shard struct {
	*stream.Shard
	g    *Group
	key  ShardKey
	slot uint32 // names it in entries
	log  *openable

	spec     atomic.Pointer[Opening]
	settings atomic.Pointer[Settings]
	sealed   atomic.Bool
	trouble  atomic.Pointer[stuck] // why it is not whole; nil: it is
	gone     atomic.Bool           // none of the group's any more
	epoch    atomic.Uint64         // grows as the log begins anew or is opened again
	synced   atomic.Pointer[syncPoint]

	// mu is held while the shard is applied to and while it is repaired: an entry for it
	// waits for the repair. Disk and network I/O.
	mu sync.Mutex

	// The applying goroutine's, of one entry.
	batches []stream.Batch
	at      []int // places in the entry
	results []stream.Result
}

// syncPoint says that in an epoch everything below next is on disk.
type syncPoint struct{ epoch, next uint64 }

// open opens a shard where st says it is. A log that is not whole is no error.
func (g *Group) open(o Opening, slot uint32, st stream.ReplicaState) (*shard, error) {
	s := &shard{g: g, key: o.Key, slot: slot}
	s.spec.Store(&o)
	log, err := newOpenable(func() (Log, error) { return g.cfg.OpenLog(s.opening()) })
	if err != nil {
		return nil, err
	}
	s.log = log
	cfg, err := g.cfg.Shard(o)
	if err = errors.Join(err, cfg.Validate()); err != nil { // the same on every broker of this version: it must not stop the group
		g.cfg.Log.Error("a shard's settings cannot be read, it is served with defaults", "shard", o.Key, "err", err)
		cfg = stream.Config{Shard: o.Key.Shard}
	}
	s.readSettings(o.Spec)
	s.Shard, err = stream.OpenReplica(cfg, stream.Replicated{Proposer: s, Log: log, State: st, Damaged: s.damaged})
	if err != nil {
		_ = log.Close() // nothing was done with it
		return nil, err
	}
	s.sealed.Store(st.Sealed)
	s.check()
	return s, nil
}

// anew does what takes records from the log, or may: what was found out of it before, or
// meanwhile, says nothing of what it has on disk afterwards.
func (s *shard) anew(do func() error) error {
	s.epoch.Add(1)
	defer s.epoch.Add(1)
	return do()
}

// Propose implements stream.Proposer.
func (s *shard) Propose(_ *stream.Shard, p *stream.Publish) { s.g.proposer.propose(s, p) }

func (s *shard) opening() Opening { return *s.spec.Load() }

func (s *shard) readSettings(spec []byte) {
	settings, err := s.g.cfg.Settings(spec)
	if err != nil {
		s.g.cfg.Log.Error("a shard's settings cannot be read, they stay as they are", "shard", s.key, "err", err)
		if s.settings.Load() != nil {
			return
		}
	}
	s.settings.Store(&settings)
}

// broken is why the shard is not whole, or nil.
func (s *shard) broken() error {
	if t := s.trouble.Load(); t != nil {
		return t.err
	}
	return nil
}

// check finds out whether the log holds what the shard is known to have.
func (s *shard) check() {
	err := s.log.Err()
	if err == nil && s.log.Next() < s.Mark() {
		err = errLacking
	}
	if err != nil {
		s.fail(err)
	}
}

// fail notes that the shard is not whole, and has it repaired.
func (s *shard) fail(err error) {
	if s.trouble.Swap(&stuck{err}) == nil {
		s.g.cfg.Metrics.Broken()
		s.g.cfg.Log.Error("a shard is not whole on this broker, it is repaired from others", "shard", s.key, "err", err)
	}
	wake(s.g.repairs)
}

// damaged is told by readers.
func (s *shard) damaged(err error) { s.fail(err) }

// lead lets readers in if the group serves. The caller holds g.mu.
func (s *shard) lead() {
	if s.g.serving.Load() && s.log.Next() >= s.Mark() {
		s.Lead()
	}
}

// shut ends the shard on this broker and closes its log once its readers are gone, or ctx is.
func (s *shard) shut(ctx context.Context, reason stream.EndReason) error {
	err := s.Close(ctx, reason)
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for s.Info().Subscriptions > 0 && ctx.Err() == nil {
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
	if closeErr := s.CloseLog(); err == nil {
		err = closeErr
	}
	return err
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
