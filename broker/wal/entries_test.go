package wal

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"felix.dev/felix/broker/vfs/faultfs"
)

// What a store holds after each step is what it holds after being opened again, with
// the cache and without.
func TestEntries(t *testing.T) {
	steps := []struct {
		name string
		do   func(e *Entries) error
		want []Entry
	}{
		{"nothing", func(*Entries) error { return nil }, nil},
		{"begin anywhere", func(e *Entries) error { return e.Append(entryRange(7, 9, 1, 10)) }, entryRange(7, 9, 1, 10)},
		{"a gap", func(e *Entries) error { return mustBe(ErrGap, e.Append(entryRange(11, 12, 1, 10))) }, entryRange(7, 9, 1, 10)},
		{"again", func(e *Entries) error { return mustBe(ErrGap, e.Append(entryRange(9, 12, 1, 10))) }, entryRange(7, 9, 1, 10)},
		{"more than a batch", func(e *Entries) error { return e.Append(entryRange(10, 29, 1, 300)) }, append(entryRange(7, 9, 1, 10), entryRange(10, 29, 1, 300)...)},
		{"prefix", func(e *Entries) error { return e.TruncateTo(28) }, entryRange(28, 29, 1, 300)},
		{"prefix again", func(e *Entries) error { return e.TruncateTo(5) }, entryRange(28, 29, 1, 300)},
		{"suffix", func(e *Entries) error { return e.TruncateFrom(29) }, entryRange(28, 28, 1, 300)},
		{"another term", func(e *Entries) error { return e.Append(entryRange(29, 31, 2, 5)) }, append(entryRange(28, 28, 1, 300), entryRange(29, 31, 2, 5)...)},
		{"all from the end", func(e *Entries) error { return e.TruncateFrom(1) }, nil},
		{"anew", func(e *Entries) error { return e.Append(entryRange(3, 4, 3, 0)) }, entryRange(3, 4, 3, 0)},
		{"all from the beginning", func(e *Entries) error { return e.TruncateTo(100) }, nil},
		{"anew above", func(e *Entries) error { return e.Append(entryRange(100, 100, 4, 5000)) }, entryRange(100, 100, 4, 5000)},
	}
	for _, cache := range []int64{0, -1, 700} {
		fsys := faultfs.New(1)
		cfg := testConfig(fsys)
		cfg.CacheBytes = cache
		l, _ := mustOpen(t, cfg)
		e := mustEntries(t, l, "g1")
		for _, step := range steps {
			do(t, step.do(e))
			if diff := cmp.Diff(step.want, all(t, e)); diff != "" {
				t.Fatalf("cache %d, %s (-want +got):\n%s", cache, step.name, diff)
			}
			again, _ := mustOpen(t, testConfig(fsys.CrashImage(faultfs.Drop, 1)))
			if diff := cmp.Diff(step.want, all(t, mustEntries(t, again, "g1"))); diff != "" {
				t.Fatalf("cache %d, %s, opened again (-want +got):\n%s", cache, step.name, diff)
			}
			mustClose(t, again)
		}
		do(t, e.Forget())
		if e.First() != 0 || e.Last() != 0 {
			t.Errorf("forgotten: %d to %d", e.First(), e.Last())
		}
		do(t, mustBe(ErrClosed, e.Append(entryRange(1, 1, 1, 1))))
		do(t, e.Forget())
		_, rec := mustOpen(t, testConfig(fsys.CrashImage(faultfs.Drop, 1)))
		if len(rec.Entries) != 0 {
			t.Errorf("found after it was forgotten: %v", rec.Entries)
		}
		mustClose(t, l)
		do(t, mustBe(ErrClosed, mustEntries(t, l, "g2").Append(entryRange(1, 1, 1, 1))))
	}
}

func mustBe(want, err error) error {
	if errors.Is(err, want) {
		return nil
	}
	return errors.Join(errors.New("want "+want.Error()), err)
}

func TestEntryTooLarge(t *testing.T) {
	l, _ := mustOpen(t, testConfig(faultfs.New(1)))
	e := mustEntries(t, l, "g1")
	if err := e.Append([]Entry{{Index: 1, Data: make([]byte, maxItemBytes)}}); err == nil {
		t.Fatal("appended")
	}
	if _, err := l.Entries(""); err == nil {
		t.Error("an empty key is taken")
	}
	if _, err := l.Journal(string(make([]byte, maxKeyBytes+1))); err == nil {
		t.Error("a long key is taken")
	}
	do(t, e.Append(entryRange(1, 2, 1, 10)))
}
