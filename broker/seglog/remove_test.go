package seglog

import (
	"errors"
	"io/fs"
	"testing"

	"felix.dev/felix/broker/vfs/faultfs"
)

func TestRemove(t *testing.T) {
	d := newDisk(t)
	cfg := d.config()
	cfg.SegmentBytes = 500
	cfg.RestoreState, cfg.SnapshotState = func([]byte) error { return nil }, func() []byte { return nil }
	l, _ := mustOpen(t, cfg)
	for l.Next() < 20 {
		mustAppend(t, l, batch(l.Next(), 1, 100))
	}
	mustClose(t, l)

	for n := range 40 { // interrupted anywhere, it can be finished
		for _, op := range []faultfs.Op{faultfs.OpRemove, faultfs.OpSyncDir} {
			image := d.copy()
			image.fs.Inject(faultfs.Fault{Op: op, Skip: n})
			err := Remove(image.fs, diskDir)
			for seed := range uint64(3) {
				left := image.crash(faultfs.Random, seed)
				if err := Remove(left.fs, diskDir); err != nil {
					t.Fatalf("after %s %d and a power cut: %v", op, n, err)
				}
			}
			if err != nil {
				err = Remove(image.fs, diskDir)
			}
			if err != nil {
				t.Fatalf("again, after %s %d: %v", op, n, err)
			}
			if _, err := image.crash(faultfs.Drop, 1).fs.Stat(diskDir); !errors.Is(err, fs.ErrNotExist) {
				t.Fatalf("the directory came back: %v", err)
			}
		}
	}

	foreign := d.copy()
	foreign.write(diskDir+"/notes.txt", []byte("mine"))
	if err := Remove(foreign.fs, diskDir); err == nil {
		t.Error("a directory with somebody's file in it was removed")
	}
	if got := string(foreign.read(diskDir + "/notes.txt")); got != "mine" {
		t.Errorf("the file holds %q", got)
	}
	if n := len(foreign.bases(segmentSuffix)); n != 0 {
		t.Errorf("%d segments are left", n)
	}
	if err := Remove(d.fs, "/data/nothing"); err != nil {
		t.Errorf("removal of nothing: %v", err)
	}
}

// What is left of a log when its removal is interrupted is its beginning, if anything: who
// opens it, to have the rest from elsewhere, must not find the end that it had.
func TestRemoveInterruptedLeavesTheBeginning(t *testing.T) {
	d := newDisk(t)
	cfg := d.manual()
	cfg.SegmentBytes = 500
	l, _ := mustOpen(t, cfg)
	for l.Next() < 20 {
		mustAppend(t, l, batch(l.Next(), 1, 100))
	}
	mustClose(t, l)
	segments := len(d.bases(segmentSuffix))
	for n := range segments {
		for seed := range uint64(3) {
			image := d.copy()
			image.fs.Inject(faultfs.Fault{Op: faultfs.OpRemove, Skip: n + 1 + segments}) // mark and indexes go before
			_ = Remove(image.fs, diskDir)
			left, rec := mustOpen(t, image.crash(faultfs.Random, seed).manual())
			if rec.Oldest != 0 || rec.Corruption != nil {
				t.Errorf("after %d removals: %+v", n, rec)
			}
			mustClose(t, left)
		}
	}
}
