package house

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestPackagesSayWhatTheyAre: every package has a doc.go with a package comment.
func TestPackagesSayWhatTheyAre(t *testing.T) {
	for _, p := range list(t, "./...") {
		if len(p.GoFiles) == 0 {
			continue
		}
		if !slices.Contains(p.GoFiles, "doc.go") {
			t.Errorf("%s has no doc.go", p.ImportPath)
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, "doc.go"), nil, parser.ParseComments|parser.PackageClauseOnly)
		if err != nil {
			t.Error(err)
			continue
		}
		if f.Doc == nil {
			t.Errorf("%s: doc.go has no package comment", p.ImportPath)
		}
	}
}

// TestGoroutinesAreCounted: a package of the product that starts goroutines has tests that look for leaked
// ones.
func TestGoroutinesAreCounted(t *testing.T) {
	for _, p := range list(t, "./broker/...", "./client/...") {
		if !startsGoroutines(t, p) {
			continue
		}
		found := false
		for _, name := range slices.Concat(p.TestGoFiles, p.XTestGoFiles) {
			rel := strings.TrimPrefix(p.Dir, root(t)+"/")
			found = found || bytes.Contains(read(t, filepath.Join(rel, name)), []byte("goleak.VerifyTestMain("))
		}
		if !found {
			t.Errorf("%s starts goroutines, and no TestMain of its tests calls goleak.VerifyTestMain", p.ImportPath)
		}
	}
}

func startsGoroutines(t *testing.T, p listed) bool {
	t.Helper()
	found := false
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			_, isGo := n.(*ast.GoStmt)
			found = found || isGo
			return !found
		})
	}
	return found
}
