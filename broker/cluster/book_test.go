package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"felix.dev/felix/broker/quorum"
	"felix.dev/felix/broker/vfs"
	"felix.dev/felix/broker/vfs/faultfs"
)

func openBook(t *testing.T, dir string) *Book {
	t.Helper()
	b, err := OpenBook(vfs.OS, dir)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *Book) resolves(t *testing.T, node, want string) {
	t.Helper()
	if got, ok := b.Resolve(node); got != want || ok != (want != "") {
		t.Errorf("%s is at %q, %v; want %q", node, got, ok, want)
	}
}

func TestBookRemembers(t *testing.T) {
	dir := t.TempDir()
	b := openBook(t, dir)
	if b.Cluster() != "" || b.owner() != (quorum.Server{}) {
		t.Error("a new book is of a cluster")
	}
	if err := b.record(map[string]position{"a": {"1", "a:1"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, bookFile)); !os.IsNotExist(err) {
		t.Errorf("something was written for no cluster: %v", err)
	}
	self := quorum.Server{Node: "a", Instance: "1"}
	if err := b.enter("c1", self, true); err != nil {
		t.Fatal(err)
	}
	if err := b.record(map[string]position{"a": {"1", "a:1"}, "b": {"2", "b:1"}}); err != nil {
		t.Fatal(err)
	}
	if again := openBook(t, dir); again.Cluster() != "c1" || !again.founding() || again.settled() || again.owner() != self {
		t.Errorf("got %+v", again.page)
	}
	if err := b.settle(); err != nil {
		t.Fatal(err)
	}
	again := openBook(t, dir)
	if again.founding() || !again.settled() {
		t.Errorf("got %+v", again.page)
	}
	again.resolves(t, "b", "b:1")
	again.resolves(t, "c", "")
	if diff := cmp.Diff(again.nodes(), []string{"a", "b"}); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

// B81: what a broker says of itself counts before the catalog has it, and what the
// catalog still says of the past does not undo it.
func TestBookHears(t *testing.T) {
	b := openBook(t, t.TempDir())
	if err := b.enter("c1", quorum.Server{Node: "a", Instance: "1"}, false); err != nil {
		t.Fatal(err)
	}
	record := func(instance, addr string) {
		t.Helper()
		if err := b.record(map[string]position{"b": {instance, addr}}); err != nil {
			t.Fatal(err)
		}
	}
	hear := func(instance, addr string, since int64) {
		b.hear(map[string]heardOf{"b": {position{instance, addr}, since}})
	}
	record("2", "b:1")
	b.resolves(t, "b", "b:1")
	hear("2", "b:2", 20)
	b.resolves(t, "b", "b:2")
	hear("2", "b:1", 10) // somebody who knows less
	b.resolves(t, "b", "b:2")
	record("2", "b:1")
	b.resolves(t, "b", "b:2")
	record("2", "b:2")
	b.resolves(t, "b", "b:2")
	record("3", "b:3") // its volume was wiped
	b.resolves(t, "b", "b:3")
	hear("3", "", 30)
	b.resolves(t, "b", "b:3")
	hear("4", "c:1", 40)
	if err := b.record(map[string]position{}); err != nil { // removed
		t.Fatal(err)
	}
	b.resolves(t, "b", "")
}

func TestBookIsDamaged(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		want       Code
	}{
		{"no JSON", "{", CodeDamaged},
		{"zeros", "\x00\x00\x00", CodeDamaged},
		{"empty", "", CodeDamaged},
		{"no cluster", `{"version":1}`, CodeDamaged},
		{"no node", `{"version":1,"cluster":"c","instance":"1"}`, CodeDamaged},
		{"a later release", `{"version":2,"cluster":"c","node":"a","instance":"1"}`, CodeVersion},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, bookFile)
			if err := os.WriteFile(path, []byte(tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := OpenBook(vfs.OS, dir); !errors.Is(err, &Error{Code: tc.want}) {
				t.Errorf("got %v", err)
			}
			if data, err := os.ReadFile(path); err != nil || string(data) != tc.text {
				t.Errorf("the file was changed: %q, %v", data, err)
			}
		})
	}
}

// A disk that is full is said, and what was known stays known.
func TestBookOnAFullDisk(t *testing.T) {
	disk := faultfs.New(1)
	if err := disk.MkdirAll("/data", 0o700); err != nil {
		t.Fatal(err)
	}
	b, err := OpenBook(disk, "/data")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.enter("c1", quorum.Server{Node: "a", Instance: "1"}, false); err != nil {
		t.Fatal(err)
	}
	if err := b.record(map[string]position{"b": {"2", "b:1"}}); err != nil {
		t.Fatal(err)
	}
	disk.Inject(faultfs.Fault{Op: faultfs.OpWrite})
	if err := b.record(map[string]position{"b": {"2", "b:2"}}); err == nil {
		t.Error("no error")
	}
	b.resolves(t, "b", "b:1")
	again, err := OpenBook(disk, "/data")
	if err != nil || again.Cluster() != "c1" {
		t.Errorf("got %v, %v", again, err)
	}
}

func TestGoldenBook(t *testing.T) {
	b := openBook(t, filepath.Join("testdata", "v1"))
	want := page{
		Version: 1, Cluster: "9e107d9d372bb6826bd81d3542a419d6", Node: "a", Instance: "0123456789abcdef", Settled: true,
		Brokers: map[string]position{"a": {"0123456789abcdef", "a.felix:5002"}, "b": {"fedcba9876543210", "b.felix:5002"}},
	}
	if diff := cmp.Diff(b.page, want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}
