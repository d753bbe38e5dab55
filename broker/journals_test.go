package broker

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"felix.dev/felix/broker/catalog"
	"felix.dev/felix/broker/seglog"
	"felix.dev/felix/broker/vfs"
	"felix.dev/felix/broker/vfs/faultfs"
	"felix.dev/felix/broker/wal"
	"felix.dev/felix/broker/wire"
)

// slowFS is a disk whose flushes take a millisecond.
type slowFS struct{ vfs.FS }

func (s slowFS) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	f, err := s.FS.OpenFile(name, flag, perm)
	return slowFile{f}, err
}

type slowFile struct{ vfs.File }

func (f slowFile) Datasync() error {
	time.Sleep(time.Millisecond)
	return f.File.Datasync()
}

// shardLog is a log with its journal, as a durable shard has them.
type shardLog struct {
	*seglog.Log

	entry    catalog.Entry
	mu       sync.Mutex
	acked    *sync.Cond
	next     uint64
	closed   func()
	recovery seglog.Recovery
}

func openShardLog(t testing.TB, fsys vfs.FS, j *journals, i int) *shardLog {
	t.Helper()
	s := &shardLog{entry: catalog.Entry{
		Spec:        catalog.StreamSpec{Name: catalog.Name{Tenant: "t", Namespace: "n", Stream: fmt.Sprintf("s%d", i)}},
		Incarnation: fmt.Sprintf("%032x", i),
	}}
	s.acked = sync.NewCond(&s.mu)
	cfg := seglog.Config{
		FS: fsys, Dir: shardDir("/data", &s.entry, 0), SegmentBytes: 64 << 10, Prefill: true, Incarnation: [16]byte{byte(i)},
		Committed: func(next uint64, _ error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.next = max(s.next, next)
			s.acked.Broadcast()
		},
	}
	var err error
	var use *journalUse
	s.closed = func() {}
	if j != nil {
		if use, err = j.use(&s.entry, 0); err != nil {
			t.Fatal(err)
		}
		cfg.Journal, s.closed = use, use.end
	}
	if s.Log, s.recovery, err = seglog.Open(cfg); err != nil {
		t.Fatal(err)
	}
	if use != nil {
		use.opened(s.Log)
	}
	return s
}

func (s *shardLog) close(t testing.TB) {
	t.Helper()
	s.closed()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func (s *shardLog) put(size int) error {
	next := s.Next()
	region := wire.AppendRecord(nil, make([]byte, size))
	frame := append(wire.BeginOffsetFrame(nil, next, 1, len(region)), region...)
	return s.Append([]seglog.Record{{Kind: seglog.KindEvents, Base: next, Count: 1, Frame: frame}})
}

func (s *shardLog) wait(next uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.next < next {
		s.acked.Wait()
	}
}

func (s *shardLog) committed() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next
}

// A hundred durable streams that are all published to cost about the flushes of one;
// one alone costs what it does without a write-ahead log.
func TestDurableStreamsShareFlushes(t *testing.T) {
	const rounds = 50
	flushes := func(streams int, shared bool) (perRound float64) {
		synctest.Test(t, func(t *testing.T) {
			disk := faultfs.New(1)
			slow := slowFS{disk}
			w, _, err := wal.Open(wal.Config{FS: slow, Dir: "/data/wal"})
			if err != nil {
				t.Fatal(err)
			}
			j := newJournals(w, "/data", slog.New(slog.DiscardHandler))
			if !shared {
				j = nil
			}
			var all []*shardLog
			for i := range streams {
				all = append(all, openShardLog(t, slow, j, i))
			}
			before := disk.Counts().Of(faultfs.OpDatasync)
			for round := range uint64(rounds) {
				for _, s := range all {
					if err := s.put(256); err != nil {
						t.Error(err)
					}
				}
				for _, s := range all {
					s.wait(round + 1)
				}
			}
			perRound = float64(disk.Counts().Of(faultfs.OpDatasync)-before) / rounds
			for _, s := range all {
				s.close(t)
			}
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		})
		return perRound
	}
	one, apart, shared := flushes(1, true), flushes(100, false), flushes(100, true)
	t.Logf("flushes per publish to each: one stream %.2f, a hundred %.2f, a hundred without sharing %.2f", one, shared, apart)
	if one > 1.1 {
		t.Errorf("one stream alone: %.2f flushes a publish", one)
	}
	if shared > 3 {
		t.Errorf("a hundred streams: %.2f flushes for a publish to each, without sharing %.2f", shared, apart)
	}
}

// B48: power is lost at random moments while many streams are published to, with
// claims of all sizes and files that come and go: what was acknowledged is there.
func TestPowerLossUnderManyStreams(t *testing.T) {
	dataDir := t.TempDir()
	for i := range 8 { // what says that a stream was not deleted is not on the disk that loses power
		if err := os.MkdirAll(filepath.Join(dataDir, streamsName, "t", "n", fmt.Sprintf("s%d", i), fmt.Sprintf("%032x", i)), 0o750); err != nil {
			t.Fatal(err)
		}
	}
	for seed := range uint64(6) {
		disk := faultfs.New(seed)
		disk.SetWriteback(0.2)
		open := func(fsys vfs.FS) (*wal.Log, *journals, []*shardLog) {
			j := newJournals(nil, dataDir, slog.New(slog.DiscardHandler))
			ready := make(chan struct{})
			w, _, err := wal.Open(wal.Config{
				FS: fsys, Dir: "/data/wal", FileBytes: 64 << 10, MaxBytes: 128 << 10, Alone: -1,
				Pressure: func(keys []string) { <-ready; j.relieve(keys) },
			})
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			j.wal = w
			close(ready)
			var logs []*shardLog
			for i := range 8 {
				logs = append(logs, openShardLog(t, fsys, j, i))
			}
			return w, j, logs
		}
		end := func(w *wal.Log, logs []*shardLog) {
			for _, s := range logs {
				s.close(t)
			}
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		}
		w, _, logs := open(disk)
		for round := range 6 {
			var wg sync.WaitGroup
			for i, s := range logs {
				wg.Go(func() {
					for n := range 40 {
						size := 100 + (n*i*37)%3000
						if n%17 == i {
							size = 40 << 10
						}
						if err := s.put(size); err != nil {
							t.Errorf("seed %d: %v", seed, err)
							return
						}
						if n%3 == 0 {
							s.wait(s.Next())
						}
					}
				})
			}
			wg.Wait()
			safe := make([]uint64, len(logs))
			for i, s := range logs {
				safe[i] = s.committed()
			}
			// The write-ahead log and the logs lose power at once: an image is of one moment.
			image := disk.CrashImage([]faultfs.Policy{faultfs.Drop, faultfs.Random}[round%2], seed*10+uint64(round))
			if round%3 == 2 {
				end(w, logs)
				disk = image
				w, _, logs = open(disk)
				for i, s := range logs {
					s.next = s.Next()
					if s.Next() < safe[i] || s.recovery.Corruption != nil {
						t.Fatalf("seed %d, round %d: log %d ends at %d, %d was acknowledged; %v", seed, round, i, s.Next(), safe[i], s.recovery.Corruption)
					}
				}
				continue
			}
			w2, _, again := open(image)
			for i, s := range again {
				if s.Next() < safe[i] || s.recovery.Corruption != nil {
					t.Fatalf("seed %d, round %d: log %d ends at %d, %d was acknowledged; %v", seed, round, i, s.Next(), safe[i], s.recovery.Corruption)
				}
				if _, err := s.Read(s.Oldest(), s.Next(), 1<<20, nil); err != nil {
					t.Fatalf("seed %d, round %d: %v", seed, round, err)
				}
			}
			end(w2, again)
		}
		end(w, logs)
	}
}

// Under pressure logs are flushed, what is deleted is forgotten, and what nobody can
// take is carried on: no shard keeps the write-ahead log from shrinking.
func TestRelieve(t *testing.T) {
	disk := faultfs.New(1)
	dataDir := t.TempDir()
	w, _, err := wal.Open(wal.Config{FS: disk, Dir: "/data/wal", FileBytes: 4 << 10, Alone: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	j := newJournals(w, dataDir, slog.New(slog.DiscardHandler))
	healthy, broken := openShardLog(t, disk, j, 1), openShardLog(t, disk, j, 2)
	fill := func(s *shardLog) {
		for range 5 {
			if err := s.put(1000); err != nil {
				t.Fatal(err)
			}
		}
		s.wait(s.Next())
	}
	fill(healthy)
	fill(broken)
	keep, err := w.Journal(journalPrefix + "kept/0")
	if err != nil {
		t.Fatal(err)
	}
	gone, err := w.Journal(journalPrefix + "gone/0")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dataDir, streamsName, "t", "n", "s", "kept"), 0o750); err != nil {
		t.Fatal(err)
	}
	for _, own := range []*wal.Journal{keep, gone} {
		done := make(chan error, 1)
		own.Append(0, 5, make([]byte, 3000), func(_, _ uint64, err error) { done <- err })
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	fill(healthy)
	disk.Inject(faultfs.Fault{Op: faultfs.OpDatasync, Name: func(name string) bool { return strings.Contains(name, "/s2/") }, Err: syscall.EIO})
	for deadline := time.Now().Add(20 * time.Second); w.Stats().Files > 5 || broken.Err() == nil; time.Sleep(time.Millisecond) {
		j.relieve(w.Stats().Pinned)
		if time.Now().After(deadline) {
			t.Fatalf("%d files are kept, for %v; %v", w.Stats().Files, w.Stats().Pinned, broken.Err())
		}
	}
	if !errors.Is(broken.Err(), seglog.ErrPoisoned) {
		t.Errorf("the broken log: %v", broken.Err())
	}
	held := 0
	if err := keep.Replay(func(from, next uint64, data []byte) error { held += len(data); return nil }); err != nil || held != 3000 {
		t.Errorf("%d bytes are held of a log that is not open, %v", held, err)
	}
	broken.closed()
	_ = broken.Close()

	// What the poisoned log acknowledged is in the journal still.
	image := disk.CrashImage(faultfs.Drop, 1)
	w2, _, err := wal.Open(wal.Config{FS: image, Dir: "/data/wal"})
	if err != nil {
		t.Fatal(err)
	}
	again := openShardLog(t, image, newJournals(w2, dataDir, slog.New(slog.DiscardHandler)), 2)
	if again.Next() != 5 {
		t.Errorf("the broken log ends at %d when it is opened again", again.Next())
	}
	again.close(t)
	healthy.close(t)
	if err := w2.Close(); err != nil {
		t.Error(err)
	}
}
