package bench

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"felix.dev/felix/client"
)

// tally is the account of one subscription. All but the counters belongs to the
// goroutine that reads the subscription, until that has ended.
type tally struct {
	// delivered counts records that came for the first time and in order; the
	// publisher's window watches it while the reader runs.
	delivered atomic.Int64
	// gone is set when the subscription has ended before its time. Nothing is
	// delivered any more, and the window does not wait for it.
	gone atomic.Bool
	_    [48]byte // the next tally's counters are on another cache line

	pattern *pattern
	// first is the number of the stream's first publisher; next is the sequence
	// that is expected of each.
	first uint16
	next  []uint64
	// latency gets the stamps, unless it is nil; shard is this reader's part of it.
	latency *recorder
	shard   int
	// start is the offset of the first record that is owed, if startKnown.
	start      uint64
	startKnown bool

	// received is delivered and what the next four count.
	repeated, disordered, damaged, foreign int64
	// gaps is what the broker or the client said is missing in the middle; hidden
	// counts the offsets that hold no event.
	gaps, hidden int64
	// lagged counts the lag notices; resumeFrom is the offset of the last one.
	lagged     int64
	resumeFrom uint64
	// lost is set when the subscription ended in another way; position is then the
	// first offset that was not delivered, if the stream has offsets.
	lost      error
	position  uint64
	resumable bool
}

func newTally(p *pattern, first uint16, publishers int) *tally {
	return &tally{pattern: p, first: first, next: make([]uint64, publishers)}
}

// take accounts for a batch. It is the hot path of every reader.
func (t *tally) take(events []client.Event) {
	var now time.Duration // read once, and only if somebody wants to know
	var fresh int64
	for i := range events {
		e := &events[i]
		t.gaps += int64(e.Gap)
		t.hidden += int64(e.Skipped)
		r, v := t.pattern.read(e.Payload)
		if v != good {
			t.reject(v)
			continue
		}
		p := int(r.publisher) - int(t.first)
		if p < 0 || p >= len(t.next) {
			t.foreign++ // another stream's: it has no business here
			continue
		}
		if r.seq < t.next[p] {
			// Seen before, or passed over and counted as missing.
			if r.seq+1 == t.next[p] {
				t.repeated++
			} else {
				t.disordered++
			}
			continue
		}
		t.next[p] = r.seq + 1
		fresh++
		if r.stamp.due != 0 && t.latency != nil {
			if now == 0 {
				now = t.latency.now()
			}
			t.latency.record(t.shard, r.stamp, now)
		}
	}
	t.delivered.Add(fresh)
}

func (t *tally) reject(v verdict) {
	if v == foreign {
		t.foreign++
	} else {
		t.damaged++
	}
}

// end accounts for why the subscription has ended. It returns the errors that are
// the bench's own fault or nobody's report.
func (t *tally) end(err error) error {
	defer t.gone.Store(true)
	var lagged *client.LaggedError
	var lost *client.LostError
	switch {
	case errors.As(err, &lagged):
		t.lagged++
		t.resumeFrom = lagged.ResumeFrom
		return nil
	case errors.As(err, &lost):
		t.lost, t.position, t.resumable = lost, lost.Position, lost.Resumable
		return nil
	}
	return fmt.Errorf("bench: subscription: %w", err)
}

// account is the sum of many tallies, or one.
type account struct {
	Expected    int64 `json:"expected"`
	Delivered   int64 `json:"delivered"`
	Dropped     int64 `json:"dropped"` // the broker has said so
	Lagged      int64 `json:"lagged"`  // subscriptions that ended with a notice
	Lost        int64 `json:"lost"`    // subscriptions that ended without one
	Unaccounted int64 `json:"unaccounted"`
	Repeated    int64 `json:"repeated"`
	Disordered  int64 `json:"disordered"`
	Damaged     int64 `json:"damaged"`
	Foreign     int64 `json:"foreign"`
}

// close compares the tally with what was published on its stream: counts has the
// number of records of each publisher.
func (t *tally) close(counts []uint64) account {
	a := account{
		Delivered:  t.delivered.Load(),
		Lagged:     t.lagged,
		Repeated:   t.repeated,
		Disordered: t.disordered,
		Damaged:    t.damaged,
		Foreign:    t.foreign,
	}
	for _, n := range counts {
		a.Expected += int64(n)
	}
	a.Dropped = t.gaps
	switch {
	case t.lagged > 0 && t.startKnown:
		a.Dropped += a.Expected - t.reached(t.resumeFrom)
	case t.lost != nil:
		a.Lost = 1
		if t.resumable && t.startKnown {
			a.Dropped += a.Expected - t.reached(t.position)
		}
	}
	a.Unaccounted = a.Expected - a.Delivered - a.Dropped
	return a
}

// reached is how many records lie before the offset at which a subscription ended,
// delivered or in a gap.
// A notice may name an offset that was delivered (the reader then gets it twice),
// and that is no loss; one that names an offset too far ahead leaves a record that
// nobody accounts for.
func (t *tally) reached(end uint64) int64 {
	return max(int64(end-t.start)-t.hidden, t.delivered.Load()+t.gaps)
}

func (a *account) add(b account) {
	a.Expected += b.Expected
	a.Delivered += b.Delivered
	a.Dropped += b.Dropped
	a.Lagged += b.Lagged
	a.Lost += b.Lost
	a.Unaccounted += b.Unaccounted
	a.Repeated += b.Repeated
	a.Disordered += b.Disordered
	a.Damaged += b.Damaged
	a.Foreign += b.Foreign
}

// err says why the account does not balance.
func (a *account) err() error {
	return a.complaints(
		complaint{a.Unaccounted, "are unaccounted for"},
		complaint{a.Repeated, "came twice"},
		complaint{a.Disordered, "came out of order"},
		complaint{a.Damaged, "were damaged"},
		complaint{a.Foreign, "are not of this run"},
	)
}

// dropped says what was lost though it was reported.
func (a *account) dropped() error {
	return a.complaints(complaint{a.Dropped, "were dropped, by the broker's own report"})
}

type complaint struct {
	n    int64
	what string
}

func (a *account) complaints(all ...complaint) error {
	var errs []error
	for _, c := range all {
		if c.n != 0 {
			errs = append(errs, fmt.Errorf("bench: %d of %d expected records %s", c.n, a.Expected, c.what))
		}
	}
	return errors.Join(errs...)
}
