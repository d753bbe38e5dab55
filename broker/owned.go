package broker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"

	"felix.dev/felix/broker/catalog"
	"felix.dev/felix/broker/route"
	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/vfs"
)

// servedName is the file that says that a memory shard was served by this broker: its
// offsets go on from what was reserved.
const servedName = "SERVED"

// ownedShard is an unreplicated shard that the catalog gives to this broker.
type ownedShard struct {
	openShard

	entry   catalog.Entry // that it was opened with
	shard   int
	leaving atomic.Bool // it takes nothing more: it is being moved or deleted
}

// open says whether an owned shard is as the catalog wants it.
func (o *ownedShard) asWanted(e *catalog.Entry) bool {
	have, want := o.entry.Spec, e.Spec
	have.Shards = want.Shards
	if o.leaving.Load() && e.Places[o.shard].Moving == "" {
		return false // it was not moved after all
	}
	return have == want && o.entry.Places[o.shard].Epoch == e.Places[o.shard].Epoch
}

// openOwned opens a shard that this broker owns.
func (s *clusterStreams) openOwned(e *catalog.Entry, shard int) error {
	fresh, gone, dir := false, false, shardDir(s.opener.dataDir, e, shard)
	var err error
	if e.Spec.Durability == catalog.Memory {
		if fresh, err = firstTime(dir); err != nil {
			return err
		}
		fresh = fresh && e.Places[shard].Epoch == 1
	} else if gone, err = wasHanded(dir, &e.Places[shard]); err != nil {
		return err
	}
	k, err := s.opener.openShard(e, shard, fresh)
	if err != nil {
		return err
	}
	o := &ownedShard{openShard: k, entry: *e, shard: shard}
	if gone { // who took it may have to ask for pages again
		o.leaving.Store(true)
		err = o.Close(context.Background(), stream.EndShutdown) // nothing was done with it
	}
	s.where.owned.Store(keyOf(e, shard), o)
	return err
}

// firstTime says whether a memory shard was never served from a directory, and notes
// that it is from now on.
func firstTime(dir string) (bool, error) {
	path := filepath.Join(dir, servedName)
	_, err := os.Stat(path)
	if err == nil {
		return false, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("broker: memory shard: %w", err)
	}
	if err := vfs.MkdirAllSync(vfs.OS, dir, dirPerm); err != nil {
		return false, fmt.Errorf("broker: memory shard: %w", err)
	}
	if err := vfs.WriteFileAtomic(vfs.OS, path, nil, 0o640); err != nil {
		return false, fmt.Errorf("broker: memory shard: %w", err)
	}
	return true, nil
}

// closeOwned ends an owned shard: its readers get what is committed and are told why.
func (s *clusterStreams) closeOwned(ctx context.Context, k route.Key, o *ownedShard, reason stream.EndReason) {
	o.leaving.Store(true)
	s.where.wake()
	wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), reopenWait)
	defer cancel()
	if err := closeShards(wait, []openShard{o.openShard}, reason); err != nil {
		s.log.Warn("shard closed with an error", slog.String("stream", o.entry.Spec.Name.String()), slog.Int("shard", o.shard),
			slog.String("reason", reason.String()), slog.Any("error", err))
	}
	s.where.owned.CompareAndDelete(k, o)
}

func keyOf(e *catalog.Entry, shard int) route.Key {
	return route.Key{Incarnation: e.Incarnation, Shard: uint32(shard)}
}
