package seglog

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"felix.dev/felix/broker/vfs/faultfs"
)

// ledger is an owner whose state is what it has seen: the number of records and the
// sum of their sequences.
type ledger struct {
	Records, Sum uint64
	refuse       func(string) bool
	restored     int
	seen         []uint64
}

func (o *ledger) apply(r Record) { o.Records++; o.Sum += r.Sequence; o.seen = append(o.seen, r.Base) }

func (o *ledger) snapshot() []byte { return fmt.Appendf(nil, "%d %d", o.Records, o.Sum) }

func (o *ledger) restore(b []byte) error {
	if o.refuse != nil && o.refuse(string(b)) {
		return errors.New("I don't know this")
	}
	o.restored++
	_, err := fmt.Sscanf(string(b), "%d %d", &o.Records, &o.Sum)
	return err
}

func (o *ledger) config(cfg Config) Config {
	cfg.RestoreState, cfg.SnapshotState, cfg.OnRecover = o.restore, o.snapshot, o.apply
	return cfg
}

func TestOwnerState(t *testing.T) {
	d := newDisk(t)
	c := newCommits()
	owner := &ledger{}
	cfg := owner.config(d.config())
	cfg.Committed = c.report
	l, _ := mustOpen(t, cfg)
	for i := range uint64(200) {
		r := withProducer(batch(i, 1, 100), 1, i*i)
		mustAppend(t, l, r)
		owner.apply(r)
	}
	if err := c.wait(200); err != nil {
		t.Fatal(err)
	}
	want := ledger{Records: owner.Records, Sum: owner.Sum}
	bases := d.bases(segmentSuffix)
	n := len(bases)
	if states := d.bases(stateSuffix); len(states) != n-1 || states[0] != bases[1] {
		t.Fatalf("states %v of segments %v", states, bases)
	}

	check := func(name string, from int, damage func(*disk), refuse func(string) bool, lost bool) {
		t.Run(name, func(t *testing.T) {
			for _, policy := range []faultfs.Policy{faultfs.Drop, faultfs.Keep} {
				image := d.crash(policy, 1)
				image.t = t
				if damage != nil {
					damage(image)
				}
				got := &ledger{refuse: refuse}
				cfg := got.config(image.config())
				l, rec := mustOpen(t, cfg)
				if rec.StateFrom != bases[from] || rec.StateLost != lost || rec.Next != 200 || rec.ReadOnly != nil {
					t.Fatalf("recovery: %+v, want the state of %d", rec, bases[from])
				}
				if len(got.seen) == 0 || got.seen[0] != bases[from] || uint64(len(got.seen)) != 200-bases[from] {
					t.Fatalf("records %v, want those from %d on", got.seen, bases[from])
				}
				if diff := cmp.Diff([]uint64{want.Records, want.Sum}, []uint64{got.Records, got.Sum}); diff != "" && !lost {
					t.Fatalf("state (-want +got):\n%s", diff)
				}
				mustClose(t, l)
			}
		})
	}
	check("newest", n-1, nil, nil, false)
	check("newest missing", n-2, func(d *disk) { d.remove(d.path(bases[n-1], stateSuffix)) }, nil, false)
	check("newest flipped", n-2, func(d *disk) { d.flip(d.path(bases[n-1], stateSuffix), 41, 0) }, nil, false)
	check("newest empty", n-2, func(d *disk) { d.write(d.path(bases[n-1], stateSuffix), nil) }, nil, false)
	check("of another segment", n-3, func(d *disk) {
		d.write(d.path(bases[n-1], stateSuffix), d.read(d.path(bases[n-3], stateSuffix)))
		d.write(d.path(bases[n-2], stateSuffix), d.read(d.path(bases[n-1], stateSuffix)))
	}, nil, false)
	newest := fmt.Sprint(bases[n-1], " ")
	check("owner refuses", n-2, nil, func(s string) bool { return s[:len(newest)] == newest }, false)
	none := func(d *disk) {
		for _, base := range bases[1:] {
			d.remove(d.path(base, stateSuffix))
		}
	}
	check("none", 0, none, nil, false)
	check("none and history gone", 1, func(d *disk) {
		none(d)
		d.remove(d.path(0, segmentSuffix))
	}, nil, true)
	check("oldest left is enough", 1, func(d *disk) {
		for _, base := range bases[2:] {
			d.remove(d.path(base, stateSuffix))
		}
		d.remove(d.path(0, segmentSuffix))
	}, nil, false)
}

// A segment that must be read to rebuild the state is damaged: the log can be read,
// but not appended to, because the owner can't know what it has accepted.
func TestOwnerStateBehindDamage(t *testing.T) {
	d := newDisk(t)
	owner := &ledger{}
	l, _ := mustOpen(t, owner.config(d.config()))
	for i := range uint64(100) {
		mustAppend(t, l, batch(i, 1, 100))
	}
	mustClose(t, l)
	bases := d.bases(segmentSuffix)
	d.remove(d.path(bases[2], stateSuffix))
	d.remove(d.path(bases[3], stateSuffix))
	d.flip(d.path(bases[1], segmentSuffix), 1000, 0)
	owner = &ledger{}
	for _, base := range bases[4:] {
		d.remove(d.path(base, stateSuffix))
	}
	l, rec := mustOpen(t, owner.config(d.config()))
	if rec.Corruption == nil || rec.Corruption.Segment != bases[1] || rec.Next != 100 {
		t.Fatalf("recovery: %+v", rec)
	}
	checkReadOnlyUpTo(t, l, rec.Corruption.Offset)
	checkDense(t, l, bases[2], 100)
}
