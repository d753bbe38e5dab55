package replica

import (
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"felix.dev/felix/broker/quorum"
	"felix.dev/felix/broker/seglog"
)

// snapshot is where the shards stood after one entry.
type snapshot struct {
	g        *Group
	shards   []*shard
	manifest manifest
}

// Snapshot implements quorum.Machine. It copies where each shard stands, no records.
func (g *Group) Snapshot() (quorum.Snapshot, error) {
	all := g.all()
	s := &snapshot{g: g, shards: all, manifest: manifest{group: g.cfg.Group, nextSlot: g.nextSlot}}
	for _, k := range all {
		s.manifest.shards = append(s.manifest.shards, manifestEntry{slot: k.slot, Opening: k.opening(), state: k.State()})
	}
	return s, nil
}

// Persist has everything that the manifest speaks of on disk, and returns it. Entries
// are applied meanwhile.
func (s *snapshot) Persist() ([]byte, error) {
	var all errgroup.Group
	all.SetLimit(openAtOnce)
	for i, k := range s.shards {
		next := s.manifest.shards[i].state.Next
		if p := k.synced.Load(); p != nil && p.epoch == k.epoch.Load() && p.next >= next {
			continue
		}
		all.Go(func() error {
			if err := k.sync(next); err != nil {
				k.mend()
				return fmt.Errorf("replica: group %d: snapshot: shard %s: %w", s.g.cfg.Group, k.key, err)
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		return nil, err
	}
	return s.manifest.encode()
}

// Release implements quorum.Snapshot.
func (s *snapshot) Release() { s.shards, s.manifest.shards = nil, nil }

// mend opens a log anew that has failed, so that the next snapshot does not fail for it
// as well: there may be no append that would have it done.
func (s *shard) mend() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone.Load() || s.g.ctx.Err() != nil || !failedForNow(s.log.Err()) {
		return
	}
	if err := s.anew(s.log.reopen); err != nil {
		s.g.cfg.Log.Warn("a log that has failed cannot be opened anew yet", "shard", s.key, "err", err)
		return
	}
	s.check()
}

// failedForNow says whether opening the log anew may help.
func failedForNow(err error) bool {
	return errors.Is(err, seglog.ErrPoisoned) || errors.Is(err, seglog.ErrClosed)
}

// sync has all records below next on disk. A shard that was dropped meanwhile is not
// asked: an entry behind the snapshot says so.
func (s *shard) sync(next uint64) error {
	if s.gone.Load() {
		return nil
	}
	epoch, have := s.epoch.Load(), s.log.Next()
	if have < next {
		return errLacking
	}
	if err := s.log.Sync(); err != nil && !s.gone.Load() {
		return err
	}
	if s.epoch.Load() != epoch {
		return errLacking // it is being repaired
	}
	s.synced.Store(&syncPoint{epoch, have})
	return nil
}
