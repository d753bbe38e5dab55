package wal

import (
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"felix.dev/felix/broker/vfs/faultfs"
)

// What a journal holds is the same for who opened the log and for who has used it.
func TestJournal(t *testing.T) {
	steps := []struct {
		name string
		do   func(j *Journal) error
		want []piece
	}{
		{"nothing", func(*Journal) error { return nil }, nil},
		{"one", func(j *Journal) error { return put(j, 10, 12, []byte("ten")) }, []piece{{10, 12, "ten"}}},
		{"behind a gap", func(j *Journal) error { return put(j, 20, 21, []byte("twenty")) }, []piece{{10, 12, "ten"}, {20, 21, "twenty"}}},
		{"released in part", func(j *Journal) error { j.Release(11); return put(j, 21, 30, nil) }, []piece{{10, 12, "ten"}, {20, 21, "twenty"}, {21, 30, ""}}},
		{"released", func(j *Journal) error { j.Release(21); return put(j, 30, 31, []byte("x")) }, []piece{{21, 30, ""}, {30, 31, "x"}}},
		{"the same offsets again", func(j *Journal) error { j.Discard(); return put(j, 21, 22, []byte("new")) }, []piece{{21, 22, "new"}}},
		{"twice", func(j *Journal) error { j.Discard(); j.Discard(); return put(j, 5, 6, []byte("low")) }, []piece{{5, 6, "low"}}},
	}
	fsys := faultfs.New(1)
	cfg := testConfig(fsys)
	cfg.FileBytes = 200
	l, _ := mustOpen(t, cfg)
	j := mustJournal(t, l, "j")
	for _, step := range steps {
		do(t, step.do(j))
		if diff := cmp.Diff(step.want, replayed(t, j)); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", step.name, diff)
		}
		again, rec := mustOpen(t, testConfig(fsys.CrashImage(faultfs.Drop, 1)))
		if diff := cmp.Diff(step.want, replayed(t, mustJournal(t, again, "j"))); diff != "" {
			t.Fatalf("%s, opened again (-want +got):\n%s", step.name, diff)
		}
		if len(rec.Journals) != min(len(step.want), 1) {
			t.Fatalf("%s, opened again: %v", step.name, rec.Journals)
		}
	}
	j.Forget()
	if put(j, 7, 8, nil) == nil {
		t.Error("a forgotten journal takes an append")
	}
	anew := mustJournal(t, l, "j")
	if got := replayed(t, anew); got != nil {
		t.Errorf("of the one before: %v", got)
	}
	do(t, put(anew, 1, 2, []byte("anew")))
	again, _ := mustOpen(t, testConfig(fsys.CrashImage(faultfs.Drop, 1)))
	if diff := cmp.Diff([]piece{{1, 2, "anew"}}, replayed(t, mustJournal(t, again, "j"))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What is to be discarded is, even if the disk was full when that was to be written.
func TestDiscardSurvivesAFullDisk(t *testing.T) {
	fsys := faultfs.New(1)
	l, _ := mustOpen(t, testConfig(fsys))
	j := mustJournal(t, l, "j")
	do(t, put(j, 5, 9, []byte("stale")))
	j.Discard()
	fsys.Inject(faultfs.Fault{Op: faultfs.OpWrite, Err: syscall.ENOSPC, Times: 2})
	for range 2 {
		do(t, mustBe(ErrDiskFull, put(j, 3, 5, []byte("refused"))))
	}
	do(t, put(j, 3, 5, []byte("three")))
	do(t, put(j, 5, 7, []byte("five")))
	again, _ := mustOpen(t, testConfig(fsys.CrashImage(faultfs.Drop, 1)))
	if diff := cmp.Diff([]piece{{3, 5, "three"}, {5, 7, "five"}}, replayed(t, mustJournal(t, again, "j"))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
