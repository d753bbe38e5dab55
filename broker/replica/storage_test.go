package replica

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/vfs/faultfs"
	"felix.dev/felix/broker/wire"
)

// While storage refuses what was agreed on, the group is stuck and says so, publishes
// are refused with nothing written, and it goes on without a restart (B82, B93).
func TestStorageRefuses(t *testing.T) {
	for name, c := range map[string]struct{ fail, heal func(*faultfs.FS) }{
		"full":      {func(f *faultfs.FS) { f.SetSpace(1) }, func(f *faultfs.FS) { f.SetSpace(-1) }},
		"read-only": {func(f *faultfs.FS) { f.SetReadOnly(true) }, func(f *faultfs.FS) { f.SetReadOnly(false) }},
		"broken": {func(f *faultfs.FS) {
			f.Inject(faultfs.Fault{Op: faultfs.OpWrite, Err: syscall.EIO})
		}, func(f *faultfs.FS) { f.Heal() }},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, 3, nil)
			a := b.lead(0)
			key, other := b.openShard(a, 0, Opening{}), b.openShard(a, 1, Opening{})
			a.must(key, "before")
			b.settle()
			c.fail(a.fs)
			under := a.begin(key, &stream.Publish{Records: region("under way", strings.Repeat("x", 40<<10))})
			b.until("the group is stuck", func() bool { return a.g.Stuck() != nil })
			var e *stream.Error
			if r := a.publish(other, "no"); !errors.As(r.Err, &e) || e.Code != wire.CodeStorage || e.Retry != wire.RetryAfter {
				t.Errorf("a publish meanwhile: %v", r)
			}
			b.settle(b.nodes[1], b.nodes[2]) // others go on
			c.heal(a.fs)
			if r := a.wait(under); r.Err != nil || r.Offset != 1 {
				t.Errorf("what was under way: %v", r)
			}
			b.until("it goes on", func() bool { return a.g.Stuck() == nil })
			a.must(other, "after")
			b.same(key, other)
		})
	}
}

// A shard that cannot be opened for want of room is opened when there is some.
func TestOpeningIsInsistedOn(t *testing.T) {
	b := newBed(t, 2, nil)
	b.lead(0)
	f := b.nodes[1]
	f.fs.SetReadOnly(true)
	key := b.openShard(b.nodes[0], 0, Opening{})
	b.nodes[0].must(key, "x")
	b.until("the follower is stuck", func() bool { return f.g.Stuck() != nil })
	f.fs.SetReadOnly(false)
	b.same(key)
}

// An entry that this release cannot read stops the replica; it is not passed over.
func TestUnreadableEntryStops(t *testing.T) {
	b := newBed(t, 1, nil)
	a := b.lead(0)
	p := a.Propose([]byte{entryVersion + 1, kindBatch})
	b.until("it is stuck", func() bool { return a.g.Stuck() != nil })
	if !errors.Is(a.g.Stuck(), errBadEntry) {
		t.Error(a.g.Stuck())
	}
	a.stop()
	<-p.Done()
}

// Settings that cannot be used are refused, and if they come in an entry all the same,
// as of another release, they do not stop the group.
func TestImpossibleSettings(t *testing.T) {
	b := newBed(t, 2, nil)
	a := b.lead(0)
	for _, bad := range [][]byte{[]byte("{"), spec(testSpec{Entries: 1 << 30})} {
		if err := a.g.OpenShard(t.Context(), Opening{Key: testKey(0), Spec: bad}); err == nil {
			t.Errorf("%s was taken", bad)
		}
		c := change{kindOpen, Opening{Key: testKey(0), Spec: bad}}
		data, err := c.encode()
		if err != nil {
			t.Fatal(err)
		}
		<-a.Propose(data).Done()
		a.must(testKey(0), "x")
		b.same(testKey(0))
		if err := a.g.Drop(t.Context(), testKey(0)); err != nil {
			t.Fatal(err)
		}
		b.until("its data is gone", func() bool {
			_, e1 := b.nodes[0].fs.Stat(shardPath(testKey(0)))
			_, e2 := b.nodes[1].fs.Stat(shardPath(testKey(0)))
			return e1 != nil && e2 != nil
		})
	}
}

// A flush that fails as a snapshot is taken is not the end of snapshots: the log is opened
// anew, also if nothing is appended to it any more.
func TestSnapshotAfterFailedFlush(t *testing.T) {
	b := newBed(t, 2, nil)
	a := b.lead(0)
	key := b.openShard(a, 0, Opening{})
	a.must(key, "one", "two")
	b.settle()
	a.fs.Inject(faultfs.Fault{Op: faultfs.OpDatasync, Err: syscall.EIO})
	persist := func() error {
		a.applying.Lock()
		s, err := a.g.Snapshot()
		a.applying.Unlock()
		if err != nil {
			return err
		}
		defer s.Release()
		_, err = s.Persist()
		return err
	}
	if err := persist(); err == nil {
		t.Fatal("the flush did not fail")
	}
	a.fs.Heal()
	b.until("snapshots are taken again", func() bool { return persist() == nil })
	a.must(key, "three")
	b.same(key)
}
