package house

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestLocks: every mutex of the product has a line in docs/locks.md, and every line a mutex.
func TestLocks(t *testing.T) {
	documented := map[string]bool{}
	for _, name := range listedLocks(read(t, "docs/locks.md")) {
		if documented[name] {
			t.Errorf("docs/locks.md has two lines for %s", name)
		}
		documented[name] = true
	}
	for _, p := range list(t, "./broker/...", "./client/...", "./cmd/...") {
		folder, err := filepath.Rel(root(t), p.Dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range p.GoFiles {
			f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, file), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range locksOf(f, filepath.ToSlash(folder)) {
				if !documented[name] {
					t.Errorf("docs/locks.md has no line for %s: what it guards, and where it stands in the order", name)
				}
				delete(documented, name)
			}
		}
	}
	for name := range documented {
		t.Errorf("docs/locks.md has a line for %s, which is not there", name)
	}
}

func TestLocksOf(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "x.go", `package x

import "sync"

var global sync.Mutex

type plain struct {
	n  int
	mu sync.Mutex
}

type nested struct {
	subs struct {
		mu sync.RWMutex
	}
	sync.Mutex
	other *sync.RWMutex
}

type free struct{ once sync.Once }
`, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	got := locksOf(f, "broker/x")
	want := []string{"broker/x.global", "broker/x.plain.mu", "broker/x.nested.subs.mu", "broker/x.nested.Mutex", "broker/x.nested.other"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("locks (-want +got)\n%s", diff)
	}
	text := []byte("| lock | guards |\n|---|---|\n| `broker/x.plain.mu` | n |\nProse with `broker/x.other`.\n| `broker/x.global` | all |\n")
	if diff := cmp.Diff([]string{"broker/x.plain.mu", "broker/x.global"}, listedLocks(text)); diff != "" {
		t.Errorf("rows (-want +got)\n%s", diff)
	}
}
