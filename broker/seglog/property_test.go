package seglog

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"felix.dev/felix/broker/vfs/faultfs"
)

// TestRandomHistories does random things to a log, power cuts at random moments
// among them, and compares it with a model after each. A failure prints the seed;
// FELIX_SEED=n runs that one alone.
func TestRandomHistories(t *testing.T) {
	if s := os.Getenv("FELIX_SEED"); s != "" {
		seed, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		randomHistory(t, seed)
		return
	}
	seeds := 300
	if testing.Short() || raceEnabled {
		seeds = 40
	}
	start := uint64(time.Now().UnixNano()) % 1_000_000_000 // new ones each time
	for seed := start; seed < start+uint64(seeds); seed++ {
		if t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { randomHistory(t, seed) }); t.Failed() {
			return
		}
	}
}

// history is a log under test and the model of it.
type history struct {
	t   *testing.T
	rng *rand.Rand
	cfg Config
	d   *disk
	l   *Log
	c   *commits
	own *ledger
	j   *memJournal // nil: the log has none

	records []Record // the model: every record ever appended that may still be there
	next    uint64   // of the model
	safe    uint64   // what a power cut must not take
	oldest  uint64
	steps   []string
}

func randomHistory(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	h := &history{t: t, rng: rng, d: newDisk(t)}
	h.cfg = h.d.config()
	h.cfg.SegmentBytes = 300 + rng.Int64N(3000)
	h.cfg.IndexEvery = 1 + rng.IntN(800)
	h.cfg.First = rng.Uint64N(2) * rng.Uint64N(1000)
	h.cfg.Fsync = Fsync(rng.IntN(2))
	h.cfg.FsyncEvery = time.Millisecond
	h.cfg.Prefill, h.cfg.prefill = rng.IntN(2) == 0, testPrefill
	if rng.IntN(2) == 0 {
		h.cfg.MaxBytes = 1 // what Trim is called for, see step
	}
	if rng.IntN(2) == 0 { // also with a mode that only reads it
		h.j, h.cfg.JournalMax = randomJournal(rng), 1+rng.IntN(1000)
	}
	h.next, h.safe, h.oldest = h.cfg.First, h.cfg.First, h.cfg.First
	defer func() {
		if t.Failed() {
			t.Logf("seed %d, config %+v, steps: %v", seed, h.cfg, h.steps)
		}
		if h.l != nil {
			_ = h.l.Close()
		}
		if h.j != nil {
			h.j.stop()
		}
	}()
	h.open("open")
	for range 60 {
		h.step()
		h.check()
	}
}

func (h *history) did(format string, args ...any) {
	h.steps = append(h.steps, fmt.Sprintf(format, args...))
}

func (h *history) step() {
	switch h.rng.IntN(20) {
	default:
		h.append()
	case 0, 1:
		h.did("wait")
		_ = h.c.wait(h.next) // a failure is met by the next append
	case 2:
		h.did("trim")
		_, _ = h.l.Trim()
	case 3:
		h.did("close")
		if err := h.l.Close(); err != nil && !errors.Is(err, ErrPoisoned) {
			h.t.Fatalf("close: %v", err)
		} else if err == nil {
			h.safe = h.next
		}
		h.open("reopen")
	case 4, 5:
		h.powerCut()
	case 6:
		h.did("killed")
		h.replaceDisk(faultfs.Keep)
	case 7:
		h.did("disk full")
		h.d.fs.Inject(faultfs.Fault{Op: faultfs.OpWrite, Err: syscall.ENOSPC, Bytes: h.rng.IntN(400)})
	case 8:
		op := faultfs.Op(h.rng.IntN(int(faultfs.OpLink)))
		h.did("%s fails", op)
		h.d.fs.Inject(faultfs.Fault{Op: op, Skip: h.rng.IntN(3)})
	case 9:
		h.did("lose an index")
		segs := *h.l.segs.Load()
		_ = h.d.fs.Remove(h.d.path(segs[h.rng.IntN(len(segs))].base, indexSuffix)) // it may have none
	case 10:
		h.d.fs.SetWriteback(h.rng.Float64())
	}
}

func (h *history) append() {
	var recs []Record
	next := h.next
	for range 1 + h.rng.IntN(4) {
		r := batch(next, 1+h.rng.IntN(4), h.rng.IntN(150))
		if h.rng.IntN(6) == 0 {
			r = generation(next)
		}
		if h.rng.IntN(3) == 0 {
			r = withProducer(r, h.rng.Uint64N(4), next)
		}
		recs = append(recs, r)
		next += uint64(r.Count)
	}
	err := h.l.Append(recs)
	h.did("append to %d: %v", next, err)
	switch {
	case err == nil:
		for _, r := range recs {
			h.own.apply(r)
		}
		h.records = append(h.records, recs...)
		h.next = next
	case errors.Is(err, ErrPoisoned):
		// Whether its bytes got to the disk is unknown: they may be back.
		h.records = append(h.records, recs...)
		_ = h.l.Close()
		if h.rng.IntN(2) == 0 {
			h.powerCut()
		} else {
			h.d.fs.Heal()
			h.open("reopen the poisoned")
			// Until something is flushed again, a power cut may still bring back what
			// was cut off before: nobody was told that it isn't there.
			mustAppend(h.t, h.l, batch(h.next, 1, 1))
			h.records = append(h.records, batch(h.next, 1, 1))
			h.own.apply(h.records[len(h.records)-1])
			h.next++
			if err := h.c.wait(h.next); err != nil {
				h.t.Fatal(err)
			}
			eventually(h.t, "a flush", func() bool { return h.l.Durable() == h.next })
			h.safe = h.next
		}
	default:
		if h.l.Next() != h.next {
			h.t.Fatalf("refused (%v), but next is %d, not %d", err, h.l.Next(), h.next)
		}
	}
}

// powerCut goes on with what one leaves.
func (h *history) powerCut() {
	h.d.fs.Heal()
	if h.cfg.Fsync == FsyncAlways {
		h.safe = max(h.safe, h.c.committed())
	} else {
		h.safe = max(h.safe, h.l.Durable())
	}
	h.did("power cut, safe %d of %d", h.safe, h.next)
	h.replaceDisk(faultfs.Policy(h.rng.IntN(2)) * faultfs.Random)
}

func (h *history) replaceDisk(p faultfs.Policy) {
	old, oldJournal := h.l, h.j
	if h.j != nil { // before the disk: what it has released by now is there
		h.j = h.j.crash(h.rng.IntN)
	}
	h.d = h.d.crash(p, h.rng.Uint64())
	_ = old.Close()
	if oldJournal != nil {
		oldJournal.stop()
	}
	h.open("open what is left")
}

func (h *history) open(what string) {
	for range 20 { // faults that were injected may hit it
		h.c = newCommits()
		h.own = &ledger{}
		cfg := h.own.config(h.cfg)
		cfg.FS, cfg.Committed = h.d.fs, func(next uint64, err error) { h.c.report(next, err) }
		c := h.c
		cfg.Committed = c.report
		if h.j != nil {
			cfg.Journal = h.j
		}
		l, rec, err := Open(cfg)
		h.did("%s: %+v, %v", what, rec, err)
		if err != nil {
			if !errors.Is(err, syscall.EIO) {
				h.t.Fatalf("open: %v", err)
			}
			continue
		}
		h.l = l
		if rec.Corruption != nil {
			h.t.Fatalf("open: %v", rec.Corruption)
		}
		if rec.Next < h.safe {
			h.t.Fatalf("opened at %d, but %d was safe", rec.Next, h.safe)
		}
		h.truncateModel(rec.Next)
		if rec.ReadOnly != nil {
			_ = l.Close()
			continue
		}
		h.safe = rec.Next
		c.next = rec.Next
		return
	}
	h.t.Fatal("the log can't be opened")
}

// truncateModel forgets what the log does: it must end where a record ends.
func (h *history) truncateModel(next uint64) {
	h.next = h.cfg.First
	for i, r := range h.records {
		if r.Base == next {
			h.records = h.records[:i]
			break
		}
		h.next = r.Base + uint64(r.Count)
	}
	if h.next != next {
		h.t.Fatalf("the log ends at %d, between records", next)
	}
	var want ledger
	for _, r := range h.records {
		want.apply(r)
	}
	if h.own.Records != want.Records || h.own.Sum != want.Sum {
		h.t.Fatalf("the owner's state is %d %d, want %d %d", h.own.Records, h.own.Sum, want.Records, want.Sum)
	}
}

// check compares a random range with the model.
func (h *history) check() {
	if h.l.Next() != h.next || h.l.Durable() > h.next {
		h.t.Fatalf("next %d, durable %d, want next %d", h.l.Next(), h.l.Durable(), h.next)
	}
	oldest := h.l.Oldest()
	if oldest > h.safe && h.cfg.Fsync == FsyncAlways && oldest > h.l.Durable() {
		h.t.Fatalf("oldest %d is above what is durable", oldest)
	}
	from := oldest + h.rng.Uint64N(h.next-oldest+1)
	var want []event
	hidden := uint64(0)
	for _, r := range h.records {
		for o := max(r.Base, from); o < r.Base+uint64(r.Count) && r.Base+uint64(r.Count) <= h.next; o++ {
			if r.Kind != KindEvents {
				hidden++
				continue
			}
			want = append(want, event{offset: o, skipped: hidden})
			hidden = 0
		}
	}
	got, err := readUntil(h.l, from, h.next, 1+h.rng.IntN(3000))
	var old *TooOldError
	if errors.As(err, &old) || errors.Is(err, syscall.EIO) {
		return // retention by the keeper; a fault
	}
	if err != nil {
		h.t.Fatalf("read from %d: %v", from, err)
	}
	if len(got) != len(want) {
		h.t.Fatalf("read from %d: %d events, want %d", from, len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			h.t.Fatalf("read from %d: event %d is %+v, want %+v", from, i, got[i], want[i])
		}
	}
}
