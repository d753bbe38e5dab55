package house

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tracked is every file that git knows or would add, relative to the top folder.
func tracked(t *testing.T) []string {
	t.Helper()
	out := command(t, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 })
}

// read returns a file of the repository, or nothing when it was deleted and git does not know yet.
func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), path))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return text
}

func TestFileLength(t *testing.T) {
	var files []file
	for _, path := range tracked(t) {
		if filepath.Ext(path) != ".go" {
			continue
		}
		text := read(t, path)
		files = append(files, file{
			path:      path,
			lines:     bytes.Count(text, []byte("\n")),
			generated: bytes.HasPrefix(text, []byte(generatedTag)),
		})
	}
	failed, listed := tooLong(files)
	for _, f := range listed {
		t.Logf("%s: more than %d needs a reason in review", f, worthALook)
	}
	for _, f := range failed {
		t.Error(f)
	}
}

func TestTooLong(t *testing.T) {
	failed, listed := tooLong([]file{
		{path: "short.go", lines: 600},
		{path: "long.go", lines: 601},
		{path: "longest.go", lines: 1000},
		{path: "over.go", lines: 1001},
		{path: "generated.go", lines: 5000, generated: true},
		{path: "some_test.go", lines: 1500},
		{path: "over_test.go", lines: 1501},
	})
	if diff := cmp.Diff(failed, []string{"over.go has 1001 lines, the limit is 1000", "over_test.go has 1501 lines, the limit is 1500"}); diff != "" {
		t.Errorf("failed (-got +want)\n%s", diff)
	}
	if diff := cmp.Diff(listed, []string{"long.go has 601 lines", "longest.go has 1000 lines"}); diff != "" {
		t.Errorf("listed (-got +want)\n%s", diff)
	}
}

// TestOnlyHere: a committed file that names a folder of one machine works on that machine only.
func TestOnlyHere(t *testing.T) {
	// Spelled in two parts, or this file would break its own rule.
	forbidden := []string{"/work" + "/main", "/work" + "/shared", "/tmp" + "/felix/", "proxy." + "golang.org", "pypi." + "org", "registry.npmjs" + ".org"}
	for _, path := range tracked(t) {
		text := read(t, path)
		for _, f := range forbidden {
			if before, _, found := bytes.Cut(text, []byte(f)); found {
				t.Errorf("%s:%d names %q", path, 1+bytes.Count(before, []byte("\n")), f)
			}
		}
	}
}
