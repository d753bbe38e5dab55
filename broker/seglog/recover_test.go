package seglog

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"felix.dev/felix/broker/vfs/faultfs"
)

// B40: whatever a power cut leaves of the last records, the log opens with the
// longest valid prefix and goes on there.
func TestTruncatedTail(t *testing.T) {
	d := newDisk(t)
	c := newCommits()
	cfg := d.config()
	cfg.Committed = c.report
	l, _ := mustOpen(t, cfg)
	at := fillLog(t, l, c, 8, 100)
	whole := d.read(d.path(0, segmentSuffix))
	end := l.active.Load().seg.end.Load()

	for cut := at[5]; cut <= end; cut++ {
		for _, zeros := range []int{0, 700} { // the file ends there, or zeros follow
			image := d.copy()
			image.write(image.path(0, segmentSuffix), append(slices.Clone(whole[:cut]), make([]byte, zeros)...))
			var recovered []uint64
			cfg := image.config()
			cfg.OnRecover = func(r Record) { recovered = append(recovered, r.Base) }
			reopened, rec := mustOpen(t, cfg)
			want := uint64(len(at))
			for i, pos := range append(slices.Clone(at), end)[1:] {
				if pos > cut {
					want = uint64(i)
					break
				}
			}
			if rec.Next != want || reopened.Next() != want || rec.ReadOnly != nil {
				t.Fatalf("cut at %d: %+v, want next %d", cut, rec, want)
			}
			if uint64(len(recovered)) != want {
				t.Fatalf("cut at %d: the owner saw %v", cut, recovered)
			}
			if torn := cut != end && !slices.Contains(at, cut) && !isZero(whole[at[want]:cut]); (rec.Cut != nil) != torn {
				t.Fatalf("cut at %d: reported %+v", cut, rec.Cut)
			} else if torn && (rec.Cut.Offset != want || rec.Cut.Pos != at[want] || rec.Cut.Reason == "") {
				t.Fatalf("cut at %d: reported %+v", cut, rec.Cut)
			}
			checkDense(t, reopened, 0, want)
			mustAppend(t, reopened, batch(want, 2, 10))
			checkDense(t, reopened, 0, want+2)
			mustClose(t, reopened)
		}
	}
}

// The same cuts, but the log had been closed: then nothing may be missing.
func TestTruncatedAfterCleanClose(t *testing.T) {
	d := newDisk(t)
	c := newCommits()
	cfg := d.config()
	cfg.Committed = c.report
	l, _ := mustOpen(t, cfg)
	at := fillLog(t, l, c, 8, 100)
	end := l.active.Load().seg.end.Load()
	mustClose(t, l)
	whole := d.read(d.path(0, segmentSuffix))
	for cut := at[5]; cut < end; cut += 7 {
		image := d.copy()
		image.write(image.path(0, segmentSuffix), whole[:cut])
		before := image.snapshot()
		l, rec := mustOpen(t, image.config())
		if rec.Corruption == nil || rec.Next != 8 {
			t.Fatalf("cut at %d: %+v", cut, rec)
		}
		checkReadOnlyUpTo(t, l, rec.Corruption.Offset)
		mustClose(t, l)
		if after := image.snapshot(); after != before {
			t.Fatalf("a damaged log was changed:\n%s\n%s", before, after)
		}
	}

	// A log that goes on after the close is not confused by the mark that is left.
	l, _ = mustOpen(t, cfg)
	c.next = 8
	at = fillLog(t, l, c, 10, 100)
	for _, policy := range []faultfs.Policy{faultfs.Drop, faultfs.Keep} {
		image := d.crash(policy, 1)
		whole := image.read(image.path(0, segmentSuffix))
		image.write(image.path(0, segmentSuffix), whole[:at[1]+5])
		l, rec := mustOpen(t, image.config())
		if rec.Corruption != nil || rec.Next != 9 {
			t.Fatalf("torn tail behind an old mark: %+v", rec)
		}
		mustClose(t, l)
	}
}

// snapshot describes every file of the log.
func (d *disk) snapshot() string {
	d.t.Helper()
	entries, err := d.fs.ReadDir(diskDir)
	if err != nil {
		d.t.Fatal(err)
	}
	var b strings.Builder
	for _, e := range entries {
		fmt.Fprintf(&b, "%s %x\n", e.Name(), d.read(diskDir+"/"+e.Name()))
	}
	return b.String()
}

// checkReadOnlyUpTo checks what a damaged log promises: everything before the damage
// can be read, then comes the typed error, and appends are refused with it.
func checkReadOnlyUpTo(t *testing.T, l *Log, offset uint64) {
	t.Helper()
	if l.Next() <= offset {
		t.Fatalf("next is %d: a reader who gets to %d isn't told", l.Next(), offset)
	}
	evs, err := readAll(l, l.Oldest(), 300)
	bad, ok := isCorruption(err)
	if !ok || bad.Offset != offset {
		t.Fatalf("read to %d, then %v; want damage at %d", len(evs), err, offset)
	}
	for i, e := range evs {
		if e.offset != l.Oldest()+uint64(i) {
			t.Fatalf("event %d is offset %d", i, e.offset)
		}
	}
	if got := l.Oldest() + uint64(len(evs)); got != offset {
		t.Fatalf("read up to %d of %d", got, offset)
	}
	if _, err := l.Read(offset, l.Next(), 100, nil); err == nil {
		t.Fatal("read behind the damage")
	} else if _, ok := isCorruption(err); !ok {
		t.Fatalf("read at the damage: %v", err)
	}
	err = l.Append([]Record{batch(l.Next(), 1, 1)})
	if _, ok := isCorruption(err); !ok {
		t.Fatalf("append to a damaged log: %v", err)
	}
	if _, err := l.Trim(); err == nil {
		t.Fatal("a damaged log was trimmed")
	}
}

// B42: zeros behind the last record are no reason to refuse anything.
func TestZeroTail(t *testing.T) {
	d := newDisk(t)
	c := newCommits()
	cfg := d.config()
	cfg.Committed = c.report
	l, _ := mustOpen(t, cfg)
	fillLog(t, l, c, 8, 100)
	path := d.path(0, segmentSuffix)
	image := d.copy()
	image.write(path, append(image.read(path), make([]byte, 64<<10)...))
	reopened, rec := mustOpen(t, image.config())
	if rec.Next != 8 || rec.Cut != nil || rec.ReadOnly != nil {
		t.Fatalf("recovery: %+v", rec)
	}
	checkDense(t, reopened, 0, 8)
	mustAppend(t, reopened, batch(8, 1, 10))
	checkDense(t, reopened, 0, 9)
}

// Damage in the middle of the active segment: later records say that what is
// damaged had been durable.
func TestFlipInActiveSegment(t *testing.T) {
	d := newDisk(t)
	c := newCommits()
	cfg := d.config()
	cfg.Committed = c.report
	l, _ := mustOpen(t, cfg)
	at := fillLog(t, l, c, 8, 100)
	end := l.active.Load().seg.end.Load()
	path := d.path(0, segmentSuffix)
	for pos := int64(segmentHeaderLen); pos < end; pos++ {
		image := d.copy()
		image.flip(path, pos, int(pos%8))
		i, _ := slices.BinarySearch(at, pos+1)
		hit := uint64(i - 1)
		l, rec := mustOpen(t, image.config())
		// The last two committed one by one: nothing vouches for the last record, and
		// for the one before it only the last.
		if hit == 7 {
			if rec.Corruption != nil || rec.Cut == nil || rec.Next != 7 {
				t.Fatalf("flip at %d: %+v", pos, rec)
			}
			checkDense(t, l, 0, 7)
		} else {
			if rec.Corruption == nil || rec.Corruption.Offset != hit || rec.Corruption.Pos != at[hit] || rec.Next != 8 {
				t.Fatalf("flip at %d, in record %d: %+v", pos, hit, rec)
			}
			checkReadOnlyUpTo(t, l, hit)
		}
		mustClose(t, l)
	}
}

// Damage in the tail that was never acknowledged: records written together, of
// which none says that another was durable.
func TestFlipInUnacknowledgedTail(t *testing.T) {
	d := newDisk(t)
	l, _ := mustOpen(t, d.config())
	entered, release := d.fs.Hold(faultfs.OpDatasync, nil)
	for i := range uint64(5) {
		mustAppend(t, l, batch(i, 1, 100))
	}
	<-entered
	image := d.copy()
	release()
	image.flip(image.path(0, segmentSuffix), segmentHeaderLen+300, 3)
	l, rec := mustOpen(t, image.config())
	if rec.Corruption != nil || rec.Cut == nil || rec.Next != 1 {
		t.Fatalf("recovery: %+v", rec)
	}
	checkDense(t, l, 0, 1)
	mustAppend(t, l, batch(1, 1, 100)) // the valid records behind the cut are gone for good
	mustClose(t, l)
	l, rec = mustOpen(t, image.config())
	if rec.Next != 2 || rec.Cut != nil || rec.Corruption != nil {
		t.Fatalf("recovery after the cut: %+v", rec)
	}
	checkDense(t, l, 0, 2)
}

// Damage in a closed segment: Open needn't see it, readers do, and stop there.
func TestFlipInSealedSegment(t *testing.T) {
	d := newDisk(t)
	l, _ := mustOpen(t, d.config())
	for l.Next() < 100 {
		mustAppend(t, l, batch(l.Next(), 1, 100))
	}
	mustClose(t, l)
	bases := d.bases(segmentSuffix)
	if len(bases) < 4 {
		t.Fatalf("segments %v", bases)
	}
	path := d.path(bases[1], segmentSuffix)
	size := int64(len(d.read(path)))
	record := int64(recordHeaderLen + len(batch(30, 1, 100).Frame))
	for pos := int64(segmentHeaderLen); pos < size; pos += 5 {
		image := d.copy()
		image.flip(path, pos, int(pos%8))
		l, rec := mustOpen(t, image.config())
		if rec.Corruption != nil || rec.Next != 100 {
			t.Fatalf("flip at %d: %+v", pos, rec)
		}
		hit := bases[1] + uint64((pos-segmentHeaderLen)/record)
		evs, err := readAll(l, 0, 1000)
		bad, ok := isCorruption(err)
		if !ok || bad.Segment != bases[1] || bad.Offset != hit || uint64(len(evs)) != hit {
			t.Fatalf("flip at %d: read %d events, then %v; want damage at %d", pos, len(evs), err, hit)
		}
		checkDense(t, l, bases[2], 100)     // a reader who begins behind it has no hole
		mustAppend(t, l, batch(100, 1, 10)) // and publishing goes on
		if got := l.Stats().DamagedReads; got == 0 {
			t.Fatal("the damaged read isn't counted")
		}
		mustClose(t, l)
	}
}

// B48: what was reported as committed is there after a power cut.
func TestAcknowledgedSurvivesPowerCut(t *testing.T) {
	for _, prefill := range []bool{false, true} {
		d := newDisk(t)
		c := newCommits()
		cfg := d.config()
		cfg.Committed, cfg.Prefill, cfg.prefill = c.report, prefill, testPrefill
		l, _ := mustOpen(t, cfg)
		for i := range uint64(1000) {
			mustAppend(t, l, batch(i, 1, 30))
			if i%50 == 49 {
				acked := c.committed() // whatever it is just now
				for seed := range uint64(3) {
					for _, policy := range []faultfs.Policy{faultfs.Drop, faultfs.Random} {
						image := d.crash(policy, seed)
						reopened, rec := mustOpen(t, image.config())
						if rec.Next < acked || rec.ReadOnly != nil {
							t.Fatalf("acked %d, seed %d: %+v", acked, seed, rec)
						}
						checkDense(t, reopened, 0, rec.Next)
						mustClose(t, reopened)
					}
				}
			}
		}
		if err := c.wait(1000); err != nil {
			t.Fatal(err)
		}
		image := d.crash(faultfs.Drop, 1)
		reopened, rec := mustOpen(t, image.config())
		if rec.Next != 1000 {
			t.Fatalf("1000 acknowledged: %+v", rec)
		}
		checkDense(t, reopened, 0, 1000)
	}
}

var testPrefill = prefillSizes{after: 256, min: 1 << 10, max: 2 << 10, chunk: 512}

// B45: names that weren't synced may be gone, or back, after a power cut; each step
// that creates or removes one is stopped before its sync.
func TestUnsyncedNames(t *testing.T) {
	d := newDisk(t)
	c := newCommits()
	cfg := d.config()
	cfg.Committed, cfg.MaxBytes = c.report, 0
	cfg.RestoreState = func([]byte) error { return nil }
	cfg.SnapshotState = func() []byte { return []byte("state") }
	check := func(when string, oldest uint64) {
		t.Helper()
		acked := c.committed()
		for seed := range uint64(40) {
			policy := faultfs.Random
			if seed == 0 {
				policy = faultfs.Drop
			}
			image := d.crash(policy, seed)
			cfg := image.config()
			cfg.RestoreState = func([]byte) error { return nil }
			l, rec := mustOpen(t, cfg)
			if rec.ReadOnly != nil || rec.Next < acked || rec.Oldest > oldest {
				t.Fatalf("%s, seed %d: acked %d: %+v", when, seed, acked, rec)
			}
			checkDense(t, l, rec.Oldest, rec.Next)
			mustAppend(t, l, batch(rec.Next, 1, 10))
			mustClose(t, l)
		}
	}
	entered, release := d.fs.Hold(faultfs.OpSyncDir, nil)
	opened := make(chan *Log)
	go func() {
		l, _, err := Open(cfg)
		if err != nil {
			t.Error(err)
		}
		opened <- l
	}()
	<-entered
	check("create", 0)
	release()
	l := <-opened
	defer func() { _ = l.Close() }()

	for range 3 {
		entered, release := d.fs.Hold(faultfs.OpSyncDir, nil)
		rolled := make(chan error)
		go func() {
			for segs := len(*l.segs.Load()); len(*l.segs.Load()) == segs; {
				if err := l.Append([]Record{batch(l.Next(), 1, 100)}); err != nil {
					rolled <- err
					return
				}
			}
			rolled <- nil
		}()
		<-entered
		check("roll", 0)
		release()
		if err := <-rolled; err != nil {
			t.Fatal(err)
		}
		if err := c.wait(l.Next()); err != nil {
			t.Fatal(err)
		}
		check("rolled", 0)
	}

	entered, release = d.fs.Hold(faultfs.OpSyncDir, nil)
	trimmed := make(chan error)
	l.trimMu.Lock()
	l.cfg.MaxBytes = 1 // as if the log had been opened with it
	l.trimMu.Unlock()
	segs := *l.segs.Load()
	go func() {
		_, err := l.Trim()
		trimmed <- err
	}()
	<-entered
	check("trim", segs[1].base)
	release()
	if err := <-trimmed; err != nil {
		t.Fatal(err)
	}
	check("trimmed", segs[len(segs)-1].base)
}

// What a failed flush left in memory only must not be built upon: an Open in the
// same boot sees it, and a later power cut would take it from under what follows.
func TestReopenAfterFailedFlushWritesAgain(t *testing.T) {
	d := newDisk(t)
	c := newCommits()
	cfg := d.config()
	cfg.Committed = c.report
	l, _ := mustOpen(t, cfg)
	fillLog(t, l, c, 5, 100)
	d.fs.Inject(faultfs.Fault{Op: faultfs.OpDatasync})
	mustAppend(t, l, batch(5, 1, 100), batch(6, 1, 100))
	if err := c.wait(7); !errors.Is(err, ErrPoisoned) || !errors.Is(err, syscall.EIO) {
		t.Fatalf("failed flush: %v", err)
	}
	if err := l.Append([]Record{batch(7, 1, 10)}); !errors.Is(err, ErrPoisoned) {
		t.Fatalf("append to a poisoned log: %v", err)
	}
	checkDense(t, l, 0, 5)
	if err := l.Close(); !errors.Is(err, ErrPoisoned) {
		t.Fatalf("close of a poisoned log: %v", err)
	}

	c = newCommits()
	c.next = 7
	cfg.Committed = c.report
	l, rec := mustOpen(t, cfg)
	if rec.Next != 7 || rec.ReadOnly != nil || l.Durable() != 7 {
		t.Fatalf("recovery: %+v", rec)
	}
	fillLog(t, l, c, 9, 100)
	reopened, rec := mustOpen(t, d.crash(faultfs.Drop, 1).config())
	if rec.Next != 9 || rec.ReadOnly != nil {
		t.Fatalf("recovery after the power cut: %+v", rec)
	}
	checkDense(t, reopened, 0, 9)
}

func TestOpenRefusesForeignSegments(t *testing.T) {
	d := newDisk(t)
	l, _ := mustOpen(t, d.config())
	mustAppend(t, l, batch(0, 1, 10))
	mustClose(t, l)
	path := d.path(0, segmentSuffix)

	cfg := d.config()
	cfg.Incarnation[0]++
	if _, _, err := Open(cfg); !errors.Is(err, ErrFormat) {
		t.Errorf("another incarnation: %v", err)
	}
	b := d.read(path)
	newer := bytes.Clone(b)
	h := encodeSegmentHeader(segmentHeader{incarnation: testIncarnation})
	h[9]++ // version
	copy(newer, reseal(h))
	d.write(path, newer)
	if _, _, err := Open(d.config()); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), "version 2") {
		t.Errorf("a newer version: %v", err)
	}
	for name, change := range map[string]func([]byte) []byte{
		"header flipped": func(b []byte) []byte { b[20] ^= 4; return b },
		"header missing": func(b []byte) []byte { return b[:10] },
		"empty":          func([]byte) []byte { return nil },
		"zeros":          func(b []byte) []byte { clear(b); return b },
		"of another place": func(b []byte) []byte {
			copy(b, encodeSegmentHeader(segmentHeader{base: 7, incarnation: testIncarnation}))
			return b
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := &disk{t: t, fs: d.fs.CrashImage(faultfs.Keep, 0)}
			d.write(path, change(bytes.Clone(b)))
			l, rec := mustOpen(t, d.config())
			if rec.Corruption == nil || rec.Corruption.Pos != 0 || rec.Next == 0 {
				t.Fatalf("recovery: %+v", rec)
			}
			checkReadOnlyUpTo(t, l, 0)
		})
	}
}

// Published bytes that look like the log's own records must not be taken for
// records when a torn tail is judged.
func TestPublishedSegmentBytesAreNoEvidence(t *testing.T) {
	other := newDisk(t)
	c := newCommits()
	cfg := other.config()
	cfg.Committed, cfg.Incarnation = c.report, [16]byte{1}
	l, _ := mustOpen(t, cfg)
	at := fillLog(t, l, c, 8, 100)
	inner := other.read(other.path(0, segmentSuffix))[at[5]:] // records that say that offsets up to 7 are durable

	d := newDisk(t)
	l, _ = mustOpen(t, d.config())
	mustAppend(t, l, batchOf(0, inner))
	image := d.copy()
	path := image.path(0, segmentSuffix)
	image.flip(path, segmentHeaderLen+recordHeaderLen+2, 1)
	_, rec := mustOpen(t, image.config())
	if rec.Corruption != nil || rec.Cut == nil {
		t.Fatalf("recovery: %+v", rec)
	}
}
