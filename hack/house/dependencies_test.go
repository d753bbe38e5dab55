package house

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// row finds the module of a line of the table in docs/dependencies.md.
var row = regexp.MustCompile("(?m)^\\| `([^` ]+)`")

// TestDependencies: every direct requirement has a line in docs/dependencies.md, and every line a requirement.
func TestDependencies(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root(t), "docs", "dependencies.md"))
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, m := range row.FindAllSubmatch(text, -1) {
		if documented[string(m[1])] {
			t.Errorf("docs/dependencies.md has two lines for %s", m[1])
		}
		documented[string(m[1])] = true
	}

	for _, file := range []string{"go.mod", "hack/tools/go.mod"} {
		var mod struct {
			Require []struct {
				Path     string
				Indirect bool
			}
			Tool []struct{ Path string }
		}
		if err := json.Unmarshal(command(t, "go", "mod", "edit", "-json", file), &mod); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, r := range mod.Require {
			// What a tool belongs to counts as direct: it is what hack/tools is for.
			tool := slices.ContainsFunc(mod.Tool, func(t struct{ Path string }) bool { return within(t.Path, r.Path) })
			if r.Indirect && !tool {
				continue
			}
			if !documented[r.Path] {
				t.Errorf("%s requires %s, and docs/dependencies.md has no line for it: what for, what else was considered, licence", file, r.Path)
			}
			delete(documented, r.Path)
		}
	}
	for path := range documented {
		t.Errorf("docs/dependencies.md has a line for %s, which nothing requires directly", path)
	}
}

// within tells whether a package path lies in a module.
func within(path, module string) bool {
	return path == module || len(path) > len(module) && path[:len(module)] == module && path[len(module)] == '/'
}
