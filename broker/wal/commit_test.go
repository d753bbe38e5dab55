package wal

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"felix.dev/felix/broker/vfs/faultfs"
)

// All who come while a flush is under way share the next one, journals and stores
// alike, and those of one journal hear of it in order.
func TestOneFlushForAllThatWait(t *testing.T) {
	fsys := faultfs.New(1)
	cfg := testConfig(fsys)
	cfg.BatchBytes = 1 << 20
	l, _ := mustOpen(t, cfg)
	do(t, put(mustJournal(t, l, "first"), 0, 1, []byte("x"))) // so that the file is there
	entered, release := fsys.Hold(faultfs.OpDatasync, nil)
	a := newAcks()
	first := mustJournal(t, l, "first")
	first.Append(1, 2, []byte("held"), a.done)
	<-entered

	before := fsys.Counts()
	var wg sync.WaitGroup
	for i := range 50 {
		j := mustJournal(t, l, fmt.Sprintf("j%d", i))
		for n := range uint64(3) {
			j.Append(n, n+1, []byte("data"), a.done)
		}
		e := mustEntries(t, l, fmt.Sprintf("e%d", i))
		wg.Go(func() {
			if err := e.Append(entryRange(1, 3, 1, 10)); err != nil {
				t.Error(err)
			}
		})
	}
	eventually(t, "everybody waits", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.pending.waiters) == 200
	})
	release()
	wg.Wait()
	next, errs := a.wait(151)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]uint64{2, 1, 2, 3, 1, 2, 3}, next[:7]); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	after := fsys.Counts()
	if n := after.Of(faultfs.OpDatasync) - before.Of(faultfs.OpDatasync); n != 1 {
		t.Errorf("%d flushes for all", n)
	}
	if n := after.Of(faultfs.OpWrite) - before.Of(faultfs.OpWrite); n != 1 {
		t.Errorf("%d writes for all", n)
	}
}

// Who would exceed what may wait, waits; the rest of the log goes on when there is
// room. Close ends the waiting.
func TestWhatWaitsIsBounded(t *testing.T) {
	fsys := faultfs.New(1)
	l, _ := mustOpen(t, testConfig(fsys))
	do(t, put(mustJournal(t, l, "j"), 0, 1, []byte("x")))
	entered, release := fsys.Hold(faultfs.OpDatasync, nil)
	a := newAcks()
	j := mustJournal(t, l, "j")
	j.Append(1, 2, make([]byte, 10<<10), a.done) // larger than a batch, and goes
	<-entered
	j.Append(2, 3, make([]byte, 1<<10), a.done)
	through := make(chan struct{})
	go func() {
		defer close(through)
		j.Append(3, 4, make([]byte, 1<<10), a.done)
	}()
	eventually(t, "somebody waits for room", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.crowd == 1
	})
	release()
	<-through
	next, errs := a.wait(3)
	if !slices.Equal(next, []uint64{2, 3, 4}) || errors.Join(errs...) != nil {
		t.Errorf("%d, %v", next, errs)
	}
}

// A log that nobody appends to writes nothing and flushes nothing, whatever is noted
// to go along with the next commit.
func TestIdleNeverFlushes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := faultfs.New(1)
		l, _, err := Open(testConfig(fsys))
		do(t, err)
		j := mustJournal(t, l, "j")
		do(t, put(j, 0, 10, []byte("data")))
		time.Sleep(time.Second)
		before := fsys.Counts()
		j.Release(5)
		j.Release(10)
		j.Release(10)
		time.Sleep(time.Hour)
		if diff := cmp.Diff(before, fsys.Counts()); diff != "" {
			t.Errorf("operations while idle (-before +after):\n%s", diff)
		}
		do(t, l.Close())
		l, rec, err := Open(testConfig(fsys))
		do(t, err)
		if len(rec.Journals) != 0 {
			t.Errorf("what was released is there after Close: %v", rec.Journals)
		}
		do(t, l.Close())
	})
}

// A journal declines while nobody else appends.
func TestAloneDeclines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := testConfig(faultfs.New(1))
		cfg.Alone = time.Second
		l, _, err := Open(cfg)
		do(t, err)
		defer func() { do(t, l.Close()) }()
		a := newAcks()
		one, two := mustJournal(t, l, "one"), mustJournal(t, l, "two")
		try := func(j *Journal) bool {
			at := j.top
			took := j.Append(at, at+1, []byte("x"), a.done)
			synctest.Wait()
			return took
		}
		for range 2 {
			if try(one) {
				t.Error("a lone journal is taken")
			}
		}
		if !try(two) || !try(one) || !try(two) || !try(two) {
			t.Error("two are not")
		}
		time.Sleep(1100 * time.Millisecond)
		if try(two) {
			t.Error("one that is alone again is taken")
		}
		do(t, mustEntries(t, l, "e").Append(entryRange(1, 1, 1, 1)))
		if !try(two) {
			t.Error("one beside a store is not")
		}
	})
}

// The fast path of a journal allocates nothing once its buffers have grown.
func TestJournalAppendAllocatesNothing(t *testing.T) {
	l, _ := mustOpen(t, Config{FS: faultfs.New(1), Dir: testDir, Alone: -1})
	j := mustJournal(t, l, "j")
	done := make(chan error, 1)
	report := func(_, _ uint64, err error) { done <- err }
	data := make([]byte, 300)
	at := uint64(0)
	step := func() {
		if !j.Append(at, at+1, data, report) {
			t.Fatal("declined")
		}
		at++
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	for range 100 {
		step()
	}
	before := l.commits.Load()
	if n := testing.AllocsPerRun(200, step); n > 1.5 { // the file system in memory takes one now and then
		t.Errorf("%.1f allocations for an append", n)
	}
	if l.commits.Load() == before {
		t.Error("nothing was committed")
	}
}
