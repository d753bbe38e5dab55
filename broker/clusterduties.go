package broker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"felix.dev/felix/broker/catalog"
	"felix.dev/felix/broker/replica"
	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/vfs"
)

const (
	// retryEvery is when what could not be done is tried again.
	retryEvery = time.Second
	// dutyTimeout bounds one thing that is done for a shard.
	dutyTimeout = 5 * time.Second
	// dutiesAtOnce is how many shards something is done for at a time: they share
	// entries of their group, and with them its round trips.
	dutiesAtOnce = 32
)

// duty is a shard of a group that this broker leads.
type duty struct {
	entry *catalog.Entry
	shard int
	spec  []byte // what the group is to know of it
}

// leadGroups makes the groups that this broker leads have the shards that the catalog
// gives them, as it has them; false: some were not managed.
func (s *clusterStreams) leadGroups(ctx context.Context, st *catalog.State, entries []catalog.Entry) bool {
	led := make(map[uint32]*replica.Group)
	for id, r := range s.groups.all() {
		if r.Serving() {
			led[id] = r
		}
	}
	if len(led) == 0 {
		return true
	}
	done := true
	duties := make(map[uint32][]duty)
	for i := range entries {
		e := &entries[i]
		if e.Spec.Durability != catalog.Quorum {
			continue
		}
		spec, err := s.specs.of(e)
		if err != nil {
			s.log.Error("settings of a stream cannot be written down", slog.Any("error", err))
			done = false
			continue
		}
		for shard, p := range e.Places {
			if led[p.Group] != nil {
				duties[p.Group] = append(duties[p.Group], duty{e, shard, spec})
			}
		}
	}
	s.specs.keep(entries)
	for id, r := range led {
		if err := s.leadGroup(ctx, r, st, duties[id]); err != nil {
			done = false
			if !errors.Is(err, stream.ErrNotLeader) && ctx.Err() == nil {
				s.log.Warn("a group does not have its shards as the catalog has them yet", slog.Uint64("group", uint64(id)), slog.Any("error", err))
			}
		}
	}
	return done
}

func (s *clusterStreams) leadGroup(ctx context.Context, r *replica.Group, st *catalog.State, duties []duty) error {
	have := make(map[replica.ShardKey]replica.ShardInfo)
	for _, i := range r.Shards() {
		have[i.Key] = i
	}
	// A catalog that lags behind may have a stream that was deleted, whose shards the group
	// has dropped: they would come back, with offsets that were used (B17).
	if slices.ContainsFunc(duties, func(d duty) bool { _, there := have[replica.ShardKey(keyOf(d.entry, d.shard))]; return !there }) {
		if err := within(ctx, s.cluster.Sync); err != nil {
			return fmt.Errorf("broker: whether shards are still to be opened is not known: %w", err)
		}
		st = s.cluster.State()
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(dutiesAtOnce)
	do := func(f func(context.Context) error) { g.Go(func() error { return within(ctx, f) }) }
	for _, d := range duties {
		e, key := d.entry, replica.ShardKey(keyOf(d.entry, d.shard))
		info, there := have[key]
		switch {
		case !there && !e.Deleting:
			if !wanted(st, e) {
				continue
			}
			do(func(ctx context.Context) error {
				return r.OpenShard(ctx, replica.Opening{Key: key, First: e.FirstOffsets[d.shard], Spec: d.spec})
			})
		case e.Deleting && !ended(e, d.shard):
			do(func(ctx context.Context) error { return s.sealReplicated(ctx, r, d, there) })
		case !e.Deleting && !bytes.Equal(info.Spec, d.spec):
			do(func(ctx context.Context) error { return r.Configure(ctx, key, d.spec) })
		}
	}
	for key := range have {
		if st.Buried(key.Incarnation) {
			do(func(ctx context.Context) error { return r.Drop(ctx, key) })
		}
	}
	return g.Wait()
}

// wanted says whether a stream is to be served as far as a state knows.
func wanted(st *catalog.State, e *catalog.Entry) bool {
	now, err := st.Get(e.Spec.Name)
	return err == nil && now.Incarnation == e.Incarnation && !now.Deleting
}

func within(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, dutyTimeout)
	defer cancel()
	return do(ctx)
}

// sealReplicated ends a shard of a stream that is being deleted, and says where. One
// that its group does not have is made first: an entry that makes it may be on its way.
func (s *clusterStreams) sealReplicated(ctx context.Context, r *replica.Group, d duty, there bool) error {
	key := replica.ShardKey(keyOf(d.entry, d.shard))
	if !there {
		if err := r.OpenShard(ctx, replica.Opening{Key: key, First: d.entry.FirstOffsets[d.shard], Spec: d.spec}); err != nil {
			return err
		}
	}
	end, err := r.Seal(ctx, key)
	if err != nil {
		return err
	}
	return s.reportEnd(ctx, d.entry, d.shard, end)
}

// endShards ends the shards that this broker owns of streams that are being deleted,
// and says where they end.
func (s *clusterStreams) endShards(ctx context.Context, entries []catalog.Entry) (done bool) {
	done = true
	for i := range entries {
		e := &entries[i]
		if !e.Deleting {
			continue
		}
		for shard := range e.Places {
			k := keyOf(e, shard)
			o := s.where.ownedShard(k)
			if o == nil || ended(e, shard) {
				continue
			}
			o.leaving.Store(true)
			err := within(ctx, func(ctx context.Context) error {
				if err := o.Close(ctx, stream.EndDeleted); err != nil {
					s.log.Warn("shard closed with an error to be deleted", slog.String("stream", e.Spec.Name.String()), slog.Any("error", err))
				}
				end := o.Written()
				if e.Spec.Durability == catalog.Memory {
					end = max(end, e.StartOffsets()[shard])
				}
				return s.reportEnd(ctx, e, shard, end)
			})
			done = done && err == nil
		}
	}
	return done
}

func (s *clusterStreams) reportEnd(ctx context.Context, e *catalog.Entry, shard int, end uint64) error {
	r, err := s.cluster.Propose(ctx, catalog.ReportEnds{
		Name: e.Spec.Name, Incarnation: e.Incarnation, Ends: []catalog.ShardEnd{{Shard: uint32(shard), End: end}},
	})
	return errors.Join(err, r.Err)
}

// ended says whether the end of a shard of a stream that is being deleted is known.
func ended(e *catalog.Entry, shard int) bool {
	for _, known := range e.Ends {
		if known.Shard == uint32(shard) {
			return true
		}
	}
	return false
}

// clearBuried removes the data of unreplicated shards whose stream was buried, when
// some were closed since it last looked.
func (s *clusterStreams) clearBuried(st *catalog.State) {
	if s.swept {
		return
	}
	s.swept = true
	dirs, err := foldersOf(s.opener.dataDir, "*")
	if err != nil {
		return
	}
	for _, dir := range dirs {
		if !st.Buried(filepath.Base(dir)) || s.groups.has(filepath.Base(dir)) {
			continue
		}
		if err := s.removeBuried(dir); err != nil {
			s.log.Warn("data of a deleted stream stays until the next start", slog.String("dir", dir), slog.Any("error", err))
		}
	}
}

// removeBuried removes a stream's folder that no group has shards in.
func (s *clusterStreams) removeBuried(dir string) error {
	if err := vfs.WriteFileAtomic(vfs.OS, filepath.Join(dir, deletedName), nil, 0o640); err != nil {
		return err
	}
	for _, name := range []string{servedName, handedName} {
		notes, err := filepath.Glob(filepath.Join(dir, "*", name))
		if err != nil {
			return fmt.Errorf("broker: remove data: %w", err)
		}
		for _, path := range notes {
			if err := os.Remove(path); err != nil {
				return fmt.Errorf("broker: remove data: %w", err)
			}
		}
	}
	return removeIncarnation(s.opener.fs, dir)
}
