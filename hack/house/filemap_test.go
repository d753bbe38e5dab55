package house

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFileMaps: a package comment of the product that has a map of the package's files names all of them and no
// others.
func TestFileMaps(t *testing.T) {
	for _, p := range list(t, "./broker/...", "./client/...", "./cmd/...") {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, "doc.go"), nil, parser.ParseComments|parser.PackageClauseOnly)
		if err != nil || f.Doc == nil {
			continue // TestPackagesSayWhatTheyAre has said so
		}
		files, err := filepath.Glob(filepath.Join(p.Dir, "*.go")) // those for other systems included
		if err != nil {
			t.Fatal(err)
		}
		absent, gone := offTheMap(f.Doc.Text(), sources(files))
		for _, name := range absent {
			t.Errorf("%s: the map in doc.go does not name %s", p.ImportPath, name)
		}
		for _, name := range gone {
			t.Errorf("%s: the map in doc.go names %s, which is not there", p.ImportPath, name)
		}
	}
}

// sources are the names of files that are no tests.
func sources(paths []string) []string {
	var names []string
	for _, path := range paths {
		name := filepath.Base(path)
		if test, _ := filepath.Match("*_test.go", name); !test { // the pattern is well formed
			names = append(names, name)
		}
	}
	return names
}

func TestOffTheMap(t *testing.T) {
	files := []string{"doc.go", "a.go", "lock_unix.go", "lock_other.go", "new.go"}
	absent, gone := offTheMap("Package x. See a.go.\n\n# Files\n\n\ta.go, lock_*.go  what\n\told.go  is gone\n", files)
	if diff := cmp.Diff([]string{"new.go"}, absent); diff != "" {
		t.Errorf("absent (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"old.go"}, gone); diff != "" {
		t.Errorf("gone (-want +got)\n%s", diff)
	}
	if absent, gone = offTheMap("Package x has no map.\n", files); absent != nil || gone != nil {
		t.Errorf("without a map: absent %v, gone %v", absent, gone)
	}
}
