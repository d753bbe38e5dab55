package auth

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"felix.dev/felix/broker/vfs"
)

// keyDir is a directory of key files with a clock and a log of problems.
type keyDir struct {
	t        *testing.T
	path     string
	now      time.Time
	stat     int // how often a file was looked at
	problems []string
}

// Stat counts.
func (d *keyDir) Stat(name string) (fs.FileInfo, error) { d.stat++; return os.Stat(name) }

func newKeyDir(t *testing.T) *keyDir {
	t.Helper()
	return &keyDir{t: t, path: filepath.Join(t.TempDir(), "t1.json"), now: time.Now()}
}

func (d *keyDir) write(key SigningKey) {
	d.t.Helper()
	if err := WriteJWKS(vfs.OS, d.path, setOf(d.t, key)); err != nil {
		d.t.Fatal(err)
	}
}

func (d *keyDir) writeText(s string) {
	d.t.Helper()
	if err := os.WriteFile(d.path, []byte(s), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

// countingFS counts the calls of Stat.
type countingFS struct {
	vfs.FS
	dir *keyDir
}

func (c countingFS) Stat(name string) (fs.FileInfo, error) { return c.dir.Stat(name) }

func (d *keyDir) open() (*FileKeys, error) {
	return NewFileKeys(FileKeysConfig{
		Paths: map[string]string{"t1": d.path},
		FS:    countingFS{vfs.OS, d},
		Now:   func() time.Time { return d.now },
		OnProblem: func(tenant string, err error) {
			if err == nil {
				d.problems = append(d.problems, tenant+" good")
			} else {
				d.problems = append(d.problems, tenant+" bad")
			}
		},
	})
}

func (d *keyDir) mustOpen() *FileKeys {
	d.t.Helper()
	f, err := d.open()
	if err != nil {
		d.t.Fatal(err)
	}
	return f
}

func (d *keyDir) kid(f *FileKeys) string {
	d.t.Helper()
	set, err := f.KeySet("t1")
	if err != nil {
		d.t.Fatal(err)
	}
	return set.Keys()[0].ID
}

func TestFileKeysFollowTheFile(t *testing.T) {
	d := newKeyDir(t)
	a, b := newKey(t), newKey(t)
	d.write(a)
	f := d.mustOpen()
	if got := d.kid(f); got != a.ID {
		t.Fatalf("got %s", got)
	}
	d.write(b)
	if got := d.kid(f); got != a.ID {
		t.Error("looked at the file before its time")
	}
	d.now = d.now.Add(time.Second)
	if got := d.kid(f); got != b.ID {
		t.Error("change not seen")
	}
	if _, err := f.KeySet("t2"); !errors.Is(err, ErrUnknownTenant) {
		t.Errorf("got %v", err)
	}
}

func TestFileKeysLookAtMostOnceASecond(t *testing.T) {
	d := newKeyDir(t)
	d.write(newKey(t))
	f := d.mustOpen()
	d.stat = 0
	for range 100 {
		d.kid(f)
	}
	d.now = d.now.Add(time.Second)
	for range 100 {
		d.kid(f)
	}
	if d.stat != 1 {
		t.Errorf("looked %d times, want 1", d.stat)
	}
}

func TestSameContentKeepsTheSet(t *testing.T) {
	d := newKeyDir(t)
	key := newKey(t)
	d.write(key)
	f := d.mustOpen()
	before, _ := f.KeySet("t1")
	d.write(key) // another file, another time, the same keys
	d.now = d.now.Add(time.Second)
	if after, _ := f.KeySet("t1"); after != before {
		t.Error("tokens would be verified again for nothing")
	}
}

func TestChangeWithinTheSameTickIsSeen(t *testing.T) {
	d := newKeyDir(t)
	a, b := newKey(t), newKey(t)
	stamp := time.Now()
	d.now = stamp
	write := func(k SigningKey) {
		d.write(k)
		if err := os.Chtimes(d.path, stamp, stamp); err != nil {
			t.Fatal(err)
		}
	}
	write(a)
	f := d.mustOpen()
	write(b) // same size, same time
	d.now = stamp.Add(time.Second)
	if got := d.kid(f); got != b.ID {
		t.Error("change not seen")
	}
}

func TestBrokenFileKeepsTheKeys(t *testing.T) {
	d := newKeyDir(t)
	a, b := newKey(t), newKey(t)
	d.write(a)
	f := d.mustOpen()
	step := func() { d.now = d.now.Add(time.Second) }
	for _, broken := range []func(){
		func() { d.writeText(`{"keys":[`) },
		func() { d.writeText(`{"keys":[]}`) },
		func() { d.writeText("") },
		func() { d.writeText(strings.Repeat(" ", maxKeyFile+1)) },
		func() {
			if err := os.Remove(d.path); err != nil {
				t.Fatal(err)
			}
		},
	} {
		broken()
		for range 3 {
			step()
			if got := d.kid(f); got != a.ID {
				t.Fatalf("got %s, want the old key", got)
			}
		}
		if f.Problems()["t1"] == nil {
			t.Error("problem not reported")
		}
	}
	d.write(b)
	step()
	if got := d.kid(f); got != b.ID {
		t.Error("repaired file not read")
	}
	if got := f.Problems(); len(got) != 0 {
		t.Errorf("still a problem: %v", got)
	}
	if diff := cmp.Diff(d.problems, []string{"t1 bad", "t1 bad", "t1 bad", "t1 bad", "t1 bad", "t1 good"}); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

func TestBrokenFileAtStartIsAnError(t *testing.T) {
	d := newKeyDir(t)
	if _, err := d.open(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	d.writeText("x")
	if _, err := d.open(); err == nil || !strings.Contains(err.Error(), "t1") {
		t.Errorf("got %v", err)
	}
}

func TestFileKeysConcurrently(t *testing.T) {
	d := newKeyDir(t)
	d.write(newKey(t))
	f, err := NewFileKeys(FileKeysConfig{Paths: map[string]string{"t1": d.path}, Every: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				if set, err := f.KeySet("t1"); err != nil || set == nil {
					t.Errorf("got %v, %v", set, err)
				}
				f.Problems()
			}
		})
	}
	for range 20 {
		d.write(newKey(t))
	}
	wg.Wait()
}

func TestFileKeysConfigValidate(t *testing.T) {
	_, err := NewFileKeys(FileKeysConfig{Paths: map[string]string{"": "x", "t": ""}, Every: -1})
	if err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("got %v, want 3 problems", err)
	}
	if _, err := NewFileKeys(FileKeysConfig{}); err == nil {
		t.Error("no files accepted")
	}
}

func TestParseKeyFlag(t *testing.T) {
	tenant, path, err := ParseKeyFlag("t1=/etc/felix/t1=x.json")
	if err != nil || tenant != "t1" || path != "/etc/felix/t1=x.json" {
		t.Errorf("got %q, %q, %v", tenant, path, err)
	}
	for _, bad := range []string{"", "t1", "=x", "t1="} {
		if _, _, err := ParseKeyFlag(bad); err == nil {
			t.Errorf("%q accepted", bad)
		}
	}
}
