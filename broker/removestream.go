package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"sync"
	"time"

	"felix.dev/felix/broker/catalog"
	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/vfs"
	"felix.dev/felix/broker/wire"
)

// remove deletes a stream: no more publishes, readers get the rest and the end, the
// catalog buries the name, and the data goes once its readers are gone.
func (s *streams) remove(ctx context.Context, n catalog.Name) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	if s.closed {
		return errClosing
	}
	have, err := s.lookup(n)
	if err != nil {
		return err
	}
	gone := unavailable(&have.entry, nil, deletedRefusal())
	gone.before = have.counted()
	s.publish(n, gone)
	wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), readersWait)
	defer cancel()
	for _, k := range have.shards {
		if err := k.Close(wait, stream.EndDeleted); err != nil {
			s.log.Warn("shard closed with an error to be deleted", slog.String("stream", n.String()), slog.Any("error", err))
		}
	}
	if err := s.bury(have); err != nil {
		// It is there still: serve it again. What a memory stream held is lost, which
		// its owner wanted anyway.
		_ = closeLogs(wait, have.shards) // opening says what is wrong
		back := s.opener.open(&have.entry, false)
		back.before = have.counted() // what was under way included
		s.publish(n, back)
		return err
	}
	s.publish(n, nil)
	s.tasks.Go(func() { s.clear(have) })
	return nil
}

// deletedRefusal is what clients are told of a stream that is being deleted.
func deletedRefusal() *stream.Error {
	return &stream.Error{
		Code: wire.CodeNotFound, Retry: wire.RetryAfter, RetryAfter: time.Second, Message: "the stream is being deleted",
	}
}

// bury makes the deletion durable: first the mark that the data may go, then the
// catalog, so that data without an entry and without the mark is never removed.
func (s *streams) bury(have *served) error {
	e := &have.entry
	dir := incarnationDir(s.opener.dataDir, e)
	if e.Spec.Durability == catalog.Durable {
		if err := vfs.MkdirAllSync(vfs.OS, dir, dirPerm); err != nil {
			return fmt.Errorf("broker: delete stream %s: %w", e.Spec.Name, err)
		}
		if err := vfs.WriteFileAtomic(vfs.OS, filepath.Join(dir, deletedName), nil, 0o640); err != nil {
			return fmt.Errorf("broker: delete stream %s: %w", e.Spec.Name, err)
		}
	}
	_, err := s.catalog.Delete(e.Spec.Name, endsOf(have))
	if err != nil && e.Spec.Durability == catalog.Durable {
		err = errors.Join(err, os.Remove(filepath.Join(dir, deletedName)))
	}
	return err
}

// endsOf are the offsets that no cursor of the stream can be beyond. Of a shard that
// could not be opened nothing is known: its successor starts beyond any offset that
// a log has ever reached.
func endsOf(v *served) []uint64 {
	ends := make([]uint64, v.entry.Spec.Shards)
	starts := v.entry.StartOffsets()
	for i := range ends {
		ends[i] = math.MaxUint64 / 4
		if i < len(v.shards) {
			ends[i] = max(v.shards[i].Written(), starts[i])
		} else if v.entry.Spec.Durability == catalog.Memory {
			ends[i] = starts[i] // its reserved mark
		}
	}
	return ends
}

// clear removes the data of a deleted stream once nobody reads it.
func (s *streams) clear(have *served) {
	ctx, cancel := context.WithTimeout(context.Background(), readersWait)
	var stopping sync.WaitGroup
	stopping.Go(func() {
		select {
		case <-s.stop:
			cancel()
		case <-ctx.Done():
		}
	})
	defer stopping.Wait()
	defer cancel()
	name := have.entry.Spec.Name.String()
	if err := closeLogs(ctx, have.shards); err != nil {
		s.log.Warn("log of a deleted stream closed with an error", slog.String("stream", name), slog.Any("error", err))
	}
	if have.entry.Spec.Durability != catalog.Durable {
		return
	}
	if err := removeIncarnation(s.opener.fs, incarnationDir(s.opener.dataDir, &have.entry)); err != nil {
		s.log.Warn("data of a deleted stream stays until the next start", slog.String("stream", name), slog.Any("error", err))
	}
}
