package wal

import (
	"errors"
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
		{"the same offsets again", func(j *Journal) error { return errors.Join(j.Discard(), put(j, 21, 22, []byte("new"))) }, []piece{{21, 22, "new"}}},
		{"twice", func(j *Journal) error { return errors.Join(j.Discard(), j.Discard(), put(j, 5, 6, []byte("low"))) }, []piece{{5, 6, "low"}}},
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

// A discard that a full disk refused has not happened.
func TestDiscardOnAFullDisk(t *testing.T) {
	fsys := faultfs.New(1)
	l, _ := mustOpen(t, testConfig(fsys))
	j := mustJournal(t, l, "j")
	do(t, put(j, 5, 9, []byte("old")))
	fsys.Inject(faultfs.Fault{Op: faultfs.OpWrite, Err: syscall.ENOSPC, Times: 2})
	for range 2 {
		do(t, mustBe(ErrDiskFull, j.Discard()))
		if diff := cmp.Diff([]piece{{5, 9, "old"}}, replayed(t, j)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	do(t, j.Discard())
	if got := replayed(t, j); got != nil {
		t.Errorf("discarded: %v", got)
	}
	again, rec := mustOpen(t, testConfig(fsys.CrashImage(faultfs.Drop, 1)))
	if got := replayed(t, mustJournal(t, again, "j")); got != nil || len(rec.Journals) != 0 {
		t.Errorf("discarded, opened again: %v, %v", got, rec.Journals)
	}
}
