package faultfs

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"felix.dev/felix/broker/vfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func create(t *testing.T, f *FS, name string) vfs.File {
	t.Helper()
	h, err := f.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func write(t *testing.T, h vfs.File, b []byte, off int64) {
	t.Helper()
	if _, err := h.WriteAt(b, off); err != nil {
		t.Fatal(err)
	}
}

func do(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func content(t *testing.T, f *FS, name string) string {
	t.Helper()
	b, err := vfs.ReadFile(f, name)
	if errors.Is(err, os.ErrNotExist) {
		return "-"
	}
	do(t, err)
	return string(b)
}

func names(t *testing.T, f *FS, dir string) string {
	t.Helper()
	entries, err := f.ReadDir(dir)
	do(t, err)
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return fmt.Sprint(out)
}

func TestCrashContent(t *testing.T) {
	f := New(1)
	h := create(t, f, "/f")
	do(t, f.SyncDir("/"))
	write(t, h, []byte("durable"), 0)
	do(t, h.Datasync())
	write(t, h, []byte("DUR"), 0)
	write(t, h, []byte(" and more"), 7)
	for _, c := range []struct {
		policy Policy
		want   string
	}{{Drop, "durable"}, {Keep, "DURable and more"}} {
		if got := content(t, f.CrashImage(c.policy, 1), "/f"); got != c.want {
			t.Errorf("policy %d left %q, want %q", c.policy, got, c.want)
		}
	}
	if got := content(t, f, "/f"); got != "DURable and more" {
		t.Errorf("the crash image changed its origin: %q", got)
	}
	do(t, h.Truncate(3))
	if got := content(t, f.CrashImage(Drop, 1), "/f"); got != "durable" {
		t.Errorf("a truncation that wasn't flushed left %q", got)
	}
	write(t, h, []byte("x"), 6)
	do(t, h.Datasync())
	if got := content(t, f.CrashImage(Drop, 1), "/f"); got != "DUR\x00\x00\x00x" {
		t.Errorf("truncated, grown, flushed: %q", got)
	}
	do(t, h.Close())
}

// Every sector that wasn't flushed has a fate of its own, and sizes have one too.
func TestCrashRandomSectors(t *testing.T) {
	f := New(1)
	h := create(t, f, "/f")
	do(t, f.SyncDir("/"))
	write(t, h, bytes.Repeat([]byte{1}, 4*sectorLen), 0)
	do(t, h.Datasync())
	write(t, h, bytes.Repeat([]byte{2}, 6*sectorLen), 0)
	seen, sizes := map[string]bool{}, map[int]bool{}
	for seed := range uint64(2000) {
		b := content(t, f.CrashImage(Random, seed), "/f")
		sizes[len(b)] = true
		fate := make([]byte, 0, 6)
		for i := 0; i < len(b); i += sectorLen {
			sector := b[i:min(i+sectorLen, len(b))]
			if sector != string(bytes.Repeat([]byte{sector[0]}, len(sector))) {
				t.Fatalf("sector %d is torn", i/sectorLen)
			}
			if old := byte(0); i < 4*sectorLen {
				old = 1
				if sector[0] != old && sector[0] != 2 {
					t.Fatalf("sector %d holds %d", i/sectorLen, sector[0])
				}
			} else if sector[0] != old && sector[0] != 2 {
				t.Fatalf("sector %d holds %d", i/sectorLen, sector[0])
			}
			fate = append(fate, '0'+sector[0])
		}
		seen[string(fate)] = true
	}
	if want := 16 + 32 + 64; len(seen) != want {
		t.Errorf("%d different outcomes, want %d", len(seen), want)
	}
	if diff := cmp.Diff(map[int]bool{4 * sectorLen: true, 5 * sectorLen: true, 6 * sectorLen: true}, sizes); diff != "" {
		t.Errorf("sizes (-want +got):\n%s", diff)
	}
	a, b := content(t, f.CrashImage(Random, 7), "/f"), content(t, f.CrashImage(Random, 7), "/f")
	if a != b {
		t.Error("the same seed gave two outcomes")
	}
	do(t, h.Close())
}

func TestWritebackKeepsOverwrittenVersions(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(50) {
		f := New(seed)
		f.SetWriteback(0.5)
		h := create(t, f, "/f")
		do(t, f.SyncDir("/"))
		for _, version := range []string{"one", "two", "six"} {
			write(t, h, []byte(version), 0)
		}
		seen[content(t, f.CrashImage(Drop, 1), "/f")] = true
		do(t, h.Close())
	}
	if diff := cmp.Diff(map[string]bool{"": true, "one": true, "two": true, "six": true}, seen); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
}

func TestCrashNames(t *testing.T) {
	f := New(1)
	do(t, f.MkdirAll("/d", 0o700))
	do(t, f.SyncDir("/"))
	for _, name := range []string{"/d/a", "/d/b"} {
		do(t, create(t, f, name).Close())
	}
	do(t, f.SyncDir("/d"))
	do(t, f.Remove("/d/a"))
	do(t, f.Rename("/d/b", "/d/c"))
	if got := names(t, f.CrashImage(Drop, 1), "/d"); got != "[a b]" {
		t.Errorf("dropped: %s", got)
	}
	if got := names(t, f.CrashImage(Keep, 1), "/d"); got != "[c]" {
		t.Errorf("kept: %s", got)
	}
	seen := map[string]bool{}
	for seed := range uint64(100) {
		seen[names(t, f.CrashImage(Random, seed), "/d")] = true
	}
	want := map[string]bool{"[a b]": true, "[b]": true, "[a c]": true, "[c]": true}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("random outcomes (-want +got):\n%s", diff)
	}
	do(t, f.SyncDir("/d"))
	if got := names(t, f.CrashImage(Drop, 1), "/d"); got != "[c]" {
		t.Errorf("synced: %s", got)
	}
}

func TestCrashTakesNewDirectory(t *testing.T) {
	f := New(1)
	do(t, f.MkdirAll("/a/b", 0o700))
	h := create(t, f, "/a/b/f")
	do(t, f.SyncDir("/a/b"))
	do(t, f.SyncDir("/a"))
	if got := names(t, f.CrashImage(Drop, 1), "/"); got != "[]" {
		t.Errorf("a directory whose own name wasn't synced is there: %s", got)
	}
	do(t, f.SyncDir("/"))
	if got := content(t, f.CrashImage(Drop, 1), "/a/b/f"); got != "" {
		t.Errorf("content %q", got)
	}
	do(t, h.Close())
}

func TestHardLinksStayOneFile(t *testing.T) {
	f := New(1)
	h := create(t, f, "/f")
	do(t, f.Link("/f", "/g"))
	do(t, f.SyncDir("/"))
	image := f.CrashImage(Keep, 1)
	g := create(t, image, "/g")
	write(t, g, []byte("both"), 0)
	if got := content(t, image, "/f"); got != "both" {
		t.Errorf("the other name holds %q", got)
	}
	do(t, errors.Join(g.Close(), h.Close()))
}

func TestFailedDatasyncLosesWhatItClaims(t *testing.T) {
	f := New(1)
	h := create(t, f, "/f")
	do(t, f.SyncDir("/"))
	write(t, h, []byte("first"), 0)
	f.Inject(Fault{Op: OpDatasync, Skip: 1})
	do(t, h.Datasync())
	write(t, h, []byte("SECND"), 0)
	other := create(t, f, "/f")
	if err := h.Datasync(); !errors.Is(err, syscall.EIO) {
		t.Fatalf("datasync: %v", err)
	}
	do(t, h.Datasync()) // like Linux, it says that all is well
	if err := other.Datasync(); !errors.Is(err, syscall.EIO) {
		t.Errorf("the other handle isn't told: %v", err)
	}
	do(t, other.Datasync())
	do(t, other.Close())
	if got := content(t, f, "/f"); got != "SECND" {
		t.Errorf("programs see %q", got)
	}
	if got := content(t, f.CrashImage(Drop, 1), "/f"); got != "first" {
		t.Errorf("on the platter: %q", got)
	}
	write(t, h, []byte("third"), 0)
	do(t, h.Datasync())
	if got := content(t, f.CrashImage(Drop, 1), "/f"); got != "third" {
		t.Errorf("written again: %q", got)
	}
	do(t, h.Close())
}

func TestSpaceAndReadOnly(t *testing.T) {
	f := New(1)
	h := create(t, f, "/f")
	f.SetSpace(10)
	n, err := h.WriteAt([]byte("0123456789abc"), 0)
	if n != 10 || !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("write of 13 into 10: %d, %v", n, err)
	}
	write(t, h, []byte("abc"), 0) // there is room for what is there
	do(t, h.Truncate(4))
	write(t, h, []byte("def"), 4)
	f.SetReadOnly(true)
	if n, err := h.WriteAt([]byte("x"), 0); n != 0 || !errors.Is(err, syscall.EROFS) {
		t.Errorf("write: %d, %v", n, err)
	}
	for what, err := range map[string]error{
		"datasync": h.Datasync(), "truncate": h.Truncate(0), "remove": f.Remove("/f"), "rename": f.Rename("/f", "/g"),
		"mkdir": f.MkdirAll("/d", 0o700), "link": f.Link("/f", "/g"), "sync": f.SyncDir("/"),
	} {
		if !errors.Is(err, syscall.EROFS) {
			t.Errorf("%s: %v", what, err)
		}
	}
	f.Heal()
	if got := content(t, f, "/f"); got != "abc3def" {
		t.Errorf("content %q", got)
	}
	do(t, h.Close())
}

func TestFaultsAndCounts(t *testing.T) {
	f := New(1)
	f.Inject(Fault{Op: OpWrite, Name: HasSuffix("g"), Times: -1, Bytes: 2, Err: syscall.ENOSPC})
	g, h := create(t, f, "/g"), create(t, f, "/h")
	if n, err := g.WriteAt([]byte("abc"), 0); n != 2 || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("write: %d, %v", n, err)
	}
	write(t, h, []byte("abc"), 0)
	entered, release := f.Hold(OpDatasync, HasSuffix("h"))
	done := make(chan error)
	go func() { done <- h.Datasync() }()
	if name := <-entered; name != "/h" {
		t.Errorf("%s hangs", name)
	}
	do(t, g.Datasync()) // others don't
	release()
	do(t, <-done)
	got := f.Counts()
	if c := []int{got.Of(OpOpen), got.Of(OpWrite), got.Of(OpDatasync)}; !slices.Equal(c, []int{2, 2, 2}) {
		t.Errorf("counts %v", c)
	}
	if f.OpenFiles() != 2 {
		t.Errorf("%d files open, want 2", f.OpenFiles())
	}
	do(t, errors.Join(g.Close(), h.Close()))
	if f.OpenFiles() != 0 {
		t.Errorf("%d files open, want 0", f.OpenFiles())
	}
}
