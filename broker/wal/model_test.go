package wal

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"felix.dev/felix/broker/vfs"
	"felix.dev/felix/broker/vfs/faultfs"
)

// hookFS calls before every operation that changes the disk.
type hookFS struct {
	*faultfs.FS
	before func(op string)
}

func (h hookFS) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	f, err := h.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return hookFile{f, h}, nil
}

func (h hookFS) Rename(a, b string) error { h.before("rename " + a); return h.FS.Rename(a, b) }
func (h hookFS) Remove(a string) error    { h.before("remove " + a); return h.FS.Remove(a) }
func (h hookFS) SyncDir(a string) error   { h.before("syncdir"); return h.FS.SyncDir(a) }

type hookFile struct {
	vfs.File
	h hookFS
}

func (f hookFile) WriteAt(b []byte, off int64) (int, error) {
	f.h.before("write " + f.Name())
	return f.File.WriteAt(b, off)
}

func (f hookFile) Datasync() error {
	f.h.before("datasync " + f.Name())
	return f.File.Datasync()
}

// model is what a log must hold.
type model struct {
	stores   map[string][]Entry
	journals map[string][]piece // acknowledged and not released
	extra    map[string][]piece // of each journal, what may be there as well
	key      string             // what the operation under way is about, and what it may leave
	maybe    [][]Entry
}

func (m *model) check(l *Log) error {
	for key, want := range m.stores {
		e, err := l.Entries(key)
		if err != nil {
			return err
		}
		var got []Entry
		for i := e.First(); i != 0 && i <= e.Last(); i++ {
			entry, err := e.Get(i)
			if err != nil {
				return err
			}
			got = append(got, entry)
		}
		allowed := [][]Entry{want}
		if key == m.key {
			allowed = append(allowed, m.maybe...)
		}
		if !slices.ContainsFunc(allowed, func(a []Entry) bool { return cmp.Equal(a, got) }) {
			return fmt.Errorf("store %s holds %v, want %v or one of %d", key, show(got), show(want), len(allowed)-1)
		}
	}
	for key, want := range m.journals {
		j, err := l.Journal(key)
		if err != nil {
			return err
		}
		var got []piece
		if err := j.Replay(func(from, next uint64, data []byte) error {
			got = append(got, piece{from, next, string(data)})
			return nil
		}); err != nil {
			return err
		}
		if !slices.IsSortedFunc(got, func(a, b piece) int { return int(a.From) - int(b.From) }) {
			return fmt.Errorf("journal %s is out of order: %v", key, got)
		}
		for _, p := range want {
			if !slices.Contains(got, p) {
				return fmt.Errorf("journal %s lost [%d, %d)", key, p.From, p.Next)
			}
		}
		for _, p := range got {
			if !slices.Contains(want, p) && !slices.Contains(m.extra[key], p) {
				return fmt.Errorf("journal %s invented [%d, %d)", key, p.From, p.Next)
			}
		}
	}
	return nil
}

func show(es []Entry) (out []string) {
	for _, e := range es {
		out = append(out, fmt.Sprintf("%d.%d", e.Index, e.Term))
	}
	return out
}

// Power is lost before every single operation of a random history, and again before
// those of the recovery: what was acknowledged is there, and nothing is invented.
func TestPowerLossAtEveryOperation(t *testing.T) {
	seeds, ops := uint64(3), 80
	if raceEnabled || testing.Short() {
		seeds, ops = 1, 25
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { powerLoss(t, seed, ops) })
	}
}

func powerLoss(t *testing.T, seed uint64, ops int) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	disk := faultfs.New(seed)
	disk.SetWriteback(0.1)
	m := &model{stores: map[string][]Entry{"e1": nil, "e2": nil}, journals: map[string][]piece{"j1": nil, "j2": nil}, extra: map[string][]piece{}}
	var mu sync.Mutex
	images := uint64(0)
	// open opens an image and looks at it; deep says that power is lost during that too.
	var open func(image *faultfs.FS, op string, deep bool)
	open = func(image *faultfs.FS, op string, deep bool) {
		var opening atomic.Bool
		opening.Store(deep)
		cfg := testConfig(image)
		cfg.FS = hookFS{FS: image, before: func(again string) {
			if opening.Load() {
				images++
				open(image.CrashImage(faultfs.Random, images), op+", then "+again, false)
			}
		}}
		l, rec, err := Open(cfg)
		opening.Store(false)
		if err != nil {
			t.Errorf("seed %d, power lost before %s: %v", seed, op, err)
			return
		}
		if rec.ReadOnly != nil {
			t.Errorf("seed %d, power lost before %s: %v", seed, op, rec.ReadOnly)
		}
		if err := m.check(l); err != nil {
			t.Errorf("seed %d, power lost before %s: %v", seed, op, err)
		}
		mustClose(t, l)
	}
	cfg := testConfig(disk)
	cfg.FileBytes, cfg.BatchBytes = 2<<10, 700
	cfg.FS = hookFS{FS: disk, before: func(op string) {
		mu.Lock()
		defer mu.Unlock()
		images++
		policy := faultfs.Random
		if images%7 == 0 {
			policy = faultfs.Drop
		}
		if !t.Failed() {
			open(disk.CrashImage(policy, images), op, images%9 == 0)
		}
	}}
	l, _, err := Open(cfg)
	do(t, err)
	defer func() { _ = l.Close() }()
	locked := func(f func()) { mu.Lock(); defer mu.Unlock(); f() }
	next := map[string]uint64{"j1": 1, "j2": 1}
	term := uint64(1)
	for range ops {
		switch rnd.IntN(12) {
		case 0, 1, 2, 3:
			key := []string{"j1", "j2"}[rnd.IntN(2)]
			p := piece{From: next[key], Next: next[key] + 1 + rnd.Uint64N(4), Data: strings.Repeat(key, 1+rnd.IntN(200))}
			locked(func() { m.extra[key] = append(m.extra[key], p) })
			do(t, put(mustJournal(t, l, key), p.From, p.Next, []byte(p.Data)))
			next[key] = p.Next
			locked(func() { m.journals[key] = append(m.journals[key], p) })
		case 4, 5:
			key := []string{"j1", "j2"}[rnd.IntN(2)]
			upTo := next[key] - min(next[key], rnd.Uint64N(6))
			locked(func() {
				m.journals[key] = slices.DeleteFunc(m.journals[key], func(p piece) bool { return p.Next <= upTo })
			})
			mustJournal(t, l, key).Release(upTo)
		case 6:
			key := []string{"j1", "j2"}[rnd.IntN(2)]
			locked(func() { m.journals[key] = nil })
			mustJournal(t, l, key).Forget()
		case 7:
			locked(func() {
				if err := m.check(l); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
			})
		default:
			key := []string{"e1", "e2"}[rnd.IntN(2)]
			e := mustEntries(t, l, key)
			have := m.stores[key]
			var after []Entry
			var run func() error
			switch rnd.IntN(6) {
			case 0:
				at := e.First() + rnd.Uint64N(uint64(len(have))+2)
				after = slices.DeleteFunc(slices.Clone(have), func(x Entry) bool { return x.Index < at })
				run = func() error { return e.TruncateTo(at) }
			case 1:
				at := e.First() + rnd.Uint64N(uint64(len(have))+2)
				after = slices.DeleteFunc(slices.Clone(have), func(x Entry) bool { return x.Index >= at })
				run = func() error { return e.TruncateFrom(at) }
			default:
				from := e.Last() + 1
				if e.Last() == 0 {
					from += rnd.Uint64N(50)
				}
				term++
				add := entryRange(from, from+rnd.Uint64N(6), term, 1+rnd.IntN(300))
				after = append(slices.Clone(have), add...)
				run = func() error { return e.Append(add) }
			}
			if len(after) == 0 {
				after = nil
			}
			locked(func() {
				m.key, m.maybe = key, [][]Entry{after}
				for n := len(have) + 1; n < len(after); n++ {
					m.maybe = append(m.maybe, after[:n])
				}
			})
			do(t, run())
			locked(func() { m.stores[key], m.key, m.maybe = after, "", nil })
		}
	}
	mustClose(t, l)
	if images < uint64(ops) {
		t.Errorf("power was lost only %d times", images)
	}
}
