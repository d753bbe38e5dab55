package catalog

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"felix.dev/felix/broker/vfs"
	"felix.dev/felix/broker/vfs/faultfs"
)

// watched calls a hook before every operation that changes something.
type watched struct {
	vfs.FS
	hook func()
}

// OpenFile calls the hook.
func (w *watched) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	w.hook()
	f, err := w.FS.OpenFile(name, flag, perm)
	return &watchedFile{f, w}, err
}

// Rename calls the hook.
func (w *watched) Rename(a, b string) error {
	w.hook()
	return w.FS.Rename(a, b)
}

// SyncDir calls the hook.
func (w *watched) SyncDir(name string) error {
	w.hook()
	return w.FS.SyncDir(name)
}

type watchedFile struct {
	vfs.File
	w *watched
}

// WriteAt calls the hook.
func (f *watchedFile) WriteAt(p []byte, off int64) (int, error) {
	f.w.hook()
	return f.File.WriteAt(p, off)
}

// Datasync calls the hook.
func (f *watchedFile) Datasync() error {
	f.w.hook()
	return f.File.Datasync()
}

// Whenever the power goes, the catalog opens with all that was acknowledged: the
// state before the change under way or the one after it, whole (B58, B88, B93).
func TestPowerLoss(t *testing.T) {
	const seed = 7
	rng := rand.New(rand.NewPCG(seed, 0))
	disk := faultfs.New(seed)
	if err := vfs.MkdirAllSync(disk, "/data", 0o755); err != nil {
		t.Fatal(err)
	}
	watch := &watched{FS: disk, hook: func() {}}
	cfg := testConfig(t)
	cfg.Path, cfg.FS, cfg.MaxGraves = "/data/catalog.json", watch, 2
	c := open(t, cfg)
	opts := cmp.Options{cmp.AllowUnexported(State{}, Entry{}, grave{}), cmpopts.EquateEmpty()}
	cuts := 0
	check := func(when string, image *faultfs.FS, allowed ...*State) {
		t.Helper()
		cuts++
		left := cfg
		left.FS = image
		got := open(t, left).current.Load()
		if !slices.ContainsFunc(allowed, func(want *State) bool { return cmp.Equal(got, want, opts) }) {
			t.Fatalf("seed %d, %s: none of the states allowed is left (-got +want):\n%s", seed, when, cmp.Diff(got, allowed[0], opts))
		}
	}
	for i := range 40 {
		before := c.current.Load()
		var during []*faultfs.FS
		watch.hook = func() {
			for _, policy := range []faultfs.Policy{faultfs.Drop, faultfs.Keep, faultfs.Random, faultfs.Random} {
				during = append(during, disk.CrashImage(policy, rng.Uint64()))
			}
		}
		err := randomChange(c, rng, fmt.Sprint(rng.IntN(4)))
		watch.hook = func() {}
		if err != nil {
			t.Fatal(err)
		}
		after := c.current.Load()
		for n, image := range during {
			check(fmt.Sprintf("during change %d, image %d", i, n), image, before, after)
		}
		for _, policy := range []faultfs.Policy{faultfs.Drop, faultfs.Random} {
			check(fmt.Sprintf("after change %d", i), disk.CrashImage(policy, rng.Uint64()), after)
		}
	}
	if cuts < 200 {
		t.Errorf("only %d cuts", cuts)
	}
}

// randomChange creates, changes or deletes a stream, whatever is possible.
func randomChange(c *Catalog, rng *rand.Rand, s string) error {
	e, err := c.Get(name(s))
	if err != nil {
		_, _, err := c.Create(memory(s, 1+rng.Uint32N(3)), "")
		return err
	}
	switch rng.IntN(3) {
	case 0:
		_, err = c.Delete(name(s), e.StartOffsets())
	case 1:
		shards := e.Spec.Shards + 1
		_, err = c.Update(name(s), Change{Shards: &shards})
	default:
		_, err = c.Reserve(name(s), 0, e.Reserved[0]+1)
	}
	return err
}
