package seglog

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"

	"felix.dev/felix/broker/vfs/faultfs"
)

// memJournal is a journal in memory that can lose power: what is known to be durable
// stays, and some of what came after it.
type memJournal struct {
	mu      sync.Mutex
	changed *sync.Cond
	ops     []journalOp
	durable int                   // of ops
	work    []func()              // commits under way
	decline func(n int) bool      // nil: takes everything
	fail    func(n int) error     // nil: none fails
	hold    bool                  // nothing is committed
	commits func(n int, f func()) // how; nil: at once, from a goroutine of its own
	appends int

	discardErr error
	wg         sync.WaitGroup
}

type journalOp struct {
	from, next uint64 // of an append
	data       []byte
	release    uint64
	discard    bool
}

func newMemJournal() *memJournal {
	j := &memJournal{}
	j.changed = sync.NewCond(&j.mu)
	j.wg.Add(1)
	go j.run()
	return j
}

func (j *memJournal) run() {
	defer j.wg.Done()
	for {
		j.mu.Lock()
		for len(j.work) == 0 || j.hold {
			j.changed.Wait()
		}
		f := j.work[0]
		j.work = j.work[1:]
		j.mu.Unlock()
		if f == nil {
			return
		}
		f()
	}
}

func (j *memJournal) stop() {
	j.mu.Lock()
	j.hold = false
	j.work = append(j.work, nil)
	j.changed.Broadcast()
	j.mu.Unlock()
	j.wg.Wait()
}

func (j *memJournal) setHold(on bool) {
	j.mu.Lock()
	j.hold = on
	j.changed.Broadcast()
	j.mu.Unlock()
}

func (j *memJournal) Append(from, next uint64, data []byte, done func(from, next uint64, err error)) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.appends++
	if j.decline != nil && j.decline(j.appends) {
		return false
	}
	if j.fail != nil {
		if err := j.fail(j.appends); err != nil {
			j.work = append(j.work, func() { done(from, next, err) })
			j.changed.Broadcast()
			return true
		}
	}
	j.ops = append(j.ops, journalOp{from: from, next: next, data: append([]byte(nil), data...)})
	upTo := len(j.ops)
	j.work = append(j.work, func() {
		j.mu.Lock()
		j.durable = max(j.durable, upTo)
		j.mu.Unlock()
		done(from, next, nil)
	})
	j.changed.Broadcast()
	return true
}

func (j *memJournal) Replay(f func(from, next uint64, data []byte) error) error {
	j.mu.Lock()
	var live []journalOp
	for _, op := range j.ops {
		switch {
		case op.discard:
			live = nil
		case op.next > 0:
			live = append(live, op)
		default:
			for len(live) > 0 && live[0].next <= op.release {
				live = live[1:]
			}
		}
	}
	j.mu.Unlock()
	for _, op := range live {
		if err := f(op.from, op.next, op.data); err != nil {
			return err
		}
	}
	return nil
}

func (j *memJournal) Release(upTo uint64) { j.note(journalOp{release: upTo}) }

func (j *memJournal) Discard() error {
	j.note(journalOp{discard: true})
	j.mu.Lock()
	defer j.mu.Unlock()
	j.durable = len(j.ops)
	return j.discardErr
}

func (j *memJournal) note(op journalOp) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.ops = append(j.ops, op)
}

func (j *memJournal) held(t testing.TB) (n int) {
	t.Helper()
	if err := j.Replay(func(_, _ uint64, _ []byte) error { n++; return nil }); err != nil {
		t.Fatal(err)
	}
	return n
}

// crash is what a power cut leaves.
func (j *memJournal) crash(more func(n int) int) *memJournal {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := j.durable + more(len(j.ops)-j.durable+1)
	left := newMemJournal()
	left.ops, left.durable, left.decline = append([]journalOp(nil), j.ops[:n]...), n, j.decline
	return left
}

func nothingMore(int) int { return 0 }

func journaledDisk(t *testing.T) (*disk, *memJournal, *commits, Config) {
	t.Helper()
	d, j, c := newDisk(t), newMemJournal(), newCommits()
	t.Cleanup(j.stop)
	cfg := d.config()
	cfg.Journal, cfg.Committed = j, c.report
	return d, j, c, cfg
}

// B48: what was acknowledged with the journal's flush alone survives a power cut that
// takes everything from the segment, and the owner sees it.
func TestJournalHoldsWhatTheSegmentLost(t *testing.T) {
	d, j, c, cfg := journaledDisk(t)
	cfg.SegmentBytes = 1 << 20
	l, _ := mustOpen(t, cfg)
	before := d.fs.Counts().Of(faultfs.OpDatasync)
	fillLog(t, l, c, 1000, 50)
	if n := d.fs.Counts().Of(faultfs.OpDatasync) - before; n != 0 || l.Durable() != 1000 {
		t.Fatalf("%d flushes of the segment, durable to %d", n, l.Durable())
	}
	for seed := range uint64(8) {
		left := j.crash(nothingMore)
		image := d.crash([]faultfs.Policy{faultfs.Drop, faultfs.Random}[seed%2], seed)
		cfg := image.config()
		cfg.SegmentBytes, cfg.Journal = 1<<20, left
		seen := uint64(0)
		cfg.OnRecover = func(r Record) {
			if r.Base != seen {
				t.Fatalf("seed %d: the owner saw %d, want %d", seed, r.Base, seen)
			}
			seen = r.Base + uint64(r.Count)
		}
		reopened, rec := mustOpen(t, cfg)
		if rec.Next != 1000 || seen != 1000 || rec.ReadOnly != nil || reopened.Durable() != 1000 {
			t.Fatalf("seed %d: %+v, the owner saw %d", seed, rec, seen)
		}
		if seed%2 == 0 && rec.Journaled != 1000 {
			t.Fatalf("seed %d: %d from the journal", seed, rec.Journaled)
		}
		checkDense(t, reopened, 0, 1000)
		if n := left.held(t); n != 0 {
			t.Fatalf("seed %d: the journal still holds %d", seed, n)
		}
		mustAppend(t, reopened, batch(1000, 1, 10))
		mustClose(t, reopened)
		left.stop()

		// It is in the segment now, whatever becomes of the journal.
		again, rec := mustOpen(t, image.crash(faultfs.Drop, 1).config())
		if rec.Next != 1001 || rec.Cut != nil {
			t.Fatalf("seed %d: without a journal: %+v", seed, rec)
		}
		mustClose(t, again)
	}
	mustClose(t, l)
	if n := j.held(t); n != 0 {
		t.Errorf("closed: the journal still holds %d", n)
	}
}

// Small appends go to the journal and large ones have the segment flushed, in turn:
// nothing is committed before everything below it is durable somewhere.
func TestJournalAndSegmentInTurn(t *testing.T) {
	d, j, c, cfg := journaledDisk(t)
	cfg.SegmentBytes, cfg.JournalMax = 1<<20, 200
	l, _ := mustOpen(t, cfg)
	entered, release := d.fs.Hold(faultfs.OpDatasync, nil)
	mustAppend(t, l, batch(0, 1, 10)) // small
	if err := c.wait(1); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, batch(1, 1, 1000)) // large: its flush hangs
	<-entered
	mustAppend(t, l, batch(2, 1, 10), batch(3, 1, 10))
	mustAppend(t, l, batch(4, 1, 1000))
	mustAppend(t, l, batch(5, 1, 10))
	eventually(t, "the journal has the small ones", func() bool { return l.inJournal.Load() == 0 })
	if l.Durable() != 1 || c.committed() != 1 {
		t.Fatalf("durable to %d, committed to %d, while offset 1 is not", l.Durable(), c.committed())
	}
	// A power cut now: the small ones behind the gap are worth nothing.
	left := j.crash(nothingMore)
	cfg = d.crash(faultfs.Drop, 1).config()
	cfg.SegmentBytes, cfg.Journal = 1<<20, left
	reopened, rec := mustOpen(t, cfg)
	if rec.Next != 1 || rec.Corruption != nil || rec.Journaled != 1 {
		t.Fatalf("recovery: %+v", rec)
	}
	mustClose(t, reopened)
	left.stop()

	release()
	if err := c.wait(6); err != nil {
		t.Fatal(err)
	}
	checkDense(t, l, 0, 6)
	mustClose(t, l)
}

// What an earlier life left in the journal behind a gap is not found once its offsets
// are used again.
func TestJournalForgetsWhatWasBehindAGap(t *testing.T) {
	d, j, _, cfg := journaledDisk(t)
	cfg.JournalMax, cfg.SegmentBytes = 200, 1<<20
	l, _ := mustOpen(t, cfg)
	entered, release := d.fs.Hold(faultfs.OpDatasync, nil)
	mustAppend(t, l, batch(0, 2, 1000)) // large
	<-entered
	mustAppend(t, l, batch(2, 3, 10)) // takes 2 to 5 in the journal
	eventually(t, "it is there", func() bool { return l.inJournal.Load() == 0 })
	left := j.crash(nothingMore)
	image := d.crash(faultfs.Drop, 1)
	release()
	mustClose(t, l)

	c := newCommits()
	cfg = image.config()
	cfg.SegmentBytes, cfg.Journal, cfg.Committed = 1<<20, left, c.report
	left.discardErr = syscall.ENOSPC // nothing is appended before it is discarded
	l, rec := mustOpen(t, cfg)
	if rec.Next != 0 || !errors.Is(rec.ReadOnly, ErrDiskFull) {
		t.Fatalf("recovery: %+v", rec)
	}
	if err := l.Append([]Record{batch(0, 2, 20)}); !errors.Is(err, ErrDiskFull) {
		t.Fatalf("append: %v", err)
	}
	left.discardErr = nil
	for next := uint64(0); next < 6; next += 2 {
		mustAppend(t, l, batch(next, 2, 20))
	}
	if err := c.wait(6); err != nil {
		t.Fatal(err)
	}
	final := left.crash(nothingMore)
	defer final.stop()
	cfg = image.crash(faultfs.Drop, 1).config()
	cfg.SegmentBytes, cfg.Journal = 1<<20, final
	var bases []uint64
	cfg.OnRecover = func(r Record) { bases = append(bases, r.Base) }
	reopened, rec := mustOpen(t, cfg)
	if fmt.Sprint(bases) != "[0 2 4]" || rec.Next != 6 {
		t.Fatalf("records at %v, %+v", bases, rec)
	}
	mustClose(t, reopened)
	mustClose(t, l)
	left.stop()
}

// A journal that declines or fails costs flushes of the segment, nothing else.
func TestJournalFails(t *testing.T) {
	_, j, c, cfg := journaledDisk(t)
	j.decline = func(n int) bool { return n%5 == 0 }
	j.fail = func(n int) error {
		if n%3 == 0 {
			return errors.New("no room in the journal")
		}
		return nil
	}
	l, _ := mustOpen(t, cfg)
	fillLog(t, l, c, 60, 100)
	for range 30 {
		mustAppend(t, l, batch(l.Next(), 1, 100))
	}
	if err := c.wait(90); err != nil {
		t.Fatal(err)
	}
	if l.Stats().Syncs == 0 {
		t.Error("the segment was never flushed")
	}
	mustClose(t, l)
}

// A checkpoint flushes the segment and empties the journal, while appends go on.
func TestCheckpoint(t *testing.T) {
	d, j, c, cfg := journaledDisk(t)
	l, _ := mustOpen(t, cfg)
	fillLog(t, l, c, 10, 50)
	if j.held(t) == 0 {
		t.Fatal("the journal holds nothing")
	}
	if err := l.Checkpoint(); err != nil {
		t.Fatal(err)
	}
	if n := j.held(t); n != 0 {
		t.Errorf("the journal still holds %d", n)
	}
	entered, release := d.fs.Hold(faultfs.OpDatasync, nil)
	mustAppend(t, l, batch(10, 1, 50))
	checked := make(chan error, 1)
	go func() { checked <- l.Checkpoint() }()
	<-entered
	fillLog(t, l, c, 15, 50) // committed by the journal meanwhile
	release()
	if err := <-checked; err != nil {
		t.Fatal(err)
	}
	left := j.crash(nothingMore)
	cfg = d.crash(faultfs.Drop, 1).config()
	cfg.Journal = left
	reopened, rec := mustOpen(t, cfg)
	if rec.Next != 15 {
		t.Fatalf("recovery: %+v", rec)
	}
	mustClose(t, reopened)
	left.stop()
	mustClose(t, l)
	if err := l.Checkpoint(); !errors.Is(err, ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

// Damage stays damage: what the segment had durably and lost is not taken from the
// journal, and nothing is changed, the journal included.
func TestDamageIsNotMendedFromTheJournal(t *testing.T) {
	d, j, c, cfg := journaledDisk(t)
	cfg.SegmentBytes = 1 << 20
	l, _ := mustOpen(t, cfg)
	at := fillLog(t, l, c, 10, 50)
	if err := l.Checkpoint(); err != nil {
		t.Fatal(err)
	}
	fillLog(t, l, c, 15, 50)
	for _, where := range []struct {
		pos     int64
		corrupt bool
	}{{at[4] + 20, true}, {at[9] + 20, true}} {
		left := j.crash(nothingMore)
		image := d.crash(faultfs.Drop, 1) // the segment has 10 records, the journal 5 more
		image.flip(image.path(0, segmentSuffix), where.pos, 3)
		cfg := image.config()
		cfg.SegmentBytes, cfg.Journal = 1<<20, left
		held := left.held(t)
		l, rec := mustOpen(t, cfg)
		if _, bad := isCorruption(rec.ReadOnly); bad != where.corrupt || rec.Next != 15 {
			t.Errorf("damage at %d: %+v", where.pos, rec)
		}
		if n := left.held(t); n != held {
			t.Errorf("damage at %d: the journal holds %d of %d", where.pos, n, held)
		}
		mustClose(t, l)
		left.stop()
	}

	// A log that is gone altogether, of which the journal knows.
	left := j.crash(nothingMore)
	empty := newDisk(t)
	cfg = empty.config()
	cfg.Journal = left
	gone, rec := mustOpen(t, cfg)
	if _, bad := isCorruption(rec.ReadOnly); !bad || rec.Next != 15 {
		t.Errorf("gone: %+v", rec)
	}
	mustClose(t, gone)
	left.stop()
	mustClose(t, l)
}

// A disk that is full when the journal's records must go to the segment: the log is not
// opened, nothing is lost, and it is when there is room.
func TestDiskFullWhenRecordsComeFromTheJournal(t *testing.T) {
	d, j, c, cfg := journaledDisk(t)
	cfg.SegmentBytes = 1 << 20
	l, _ := mustOpen(t, cfg)
	fillLog(t, l, c, 20, 100)
	for n := range 20 {
		left := j.crash(nothingMore)
		image := d.crash(faultfs.Drop, 1)
		image.fs.Inject(faultfs.Fault{Op: faultfs.OpWrite, Skip: n, Err: syscall.ENOSPC, Bytes: 30})
		cfg := image.config()
		cfg.Journal = left
		if _, _, err := Open(cfg); !errors.Is(err, ErrDiskFull) {
			t.Fatalf("write %d: %v", n, err)
		}
		reopened, rec := mustOpen(t, cfg)
		if rec.Next != 20 || rec.ReadOnly != nil {
			t.Fatalf("write %d: %+v", n, rec)
		}
		checkDense(t, reopened, 0, 20)
		mustClose(t, reopened)
		left.stop()
	}
	mustClose(t, l)
}

// randomJournal takes some of what it is offered.
func randomJournal(rng *rand.Rand) *memJournal {
	j := newMemJournal()
	skip := 1 + rng.IntN(5)
	j.decline = func(n int) bool { return n%skip == 1 }
	return j
}

// A flush that was asked for while a segment ends, and that comes to its file when the
// keeper has closed it, is no failure.
func TestCheckpointMeetsTheEndOfASegment(t *testing.T) {
	_, _, c, cfg := journaledDisk(t)
	cfg.SegmentBytes = 300
	l, _ := mustOpen(t, cfg)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if err := l.Checkpoint(); err != nil {
				t.Error(err)
				return
			}
		}
	})
	fillLog(t, l, c, 400, 200)
	close(stop)
	wg.Wait()
	mustClose(t, l)
}
