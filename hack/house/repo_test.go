package house

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// root is the repository's top folder.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// watch reads every folder of the repository. `go test` repeats a result from its cache as long as what the
// test itself has read is the same, and it does not see what a child process reads.
func watch(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(root(t), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), ".git") {
			return fs.SkipDir
		}
		if errors.Is(err, fs.ErrNotExist) { // another test's temporary folder
			return nil
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// command runs a program in the top folder and returns what it printed.
func command(t *testing.T, name string, args ...string) []byte {
	t.Helper()
	watch(t)
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = root(t)
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, errOut.String())
	}
	return out
}

// listed is what `go list` knows of a package: more than the arrows need.
type listed struct {
	pkg
	Dir                                string
	GoFiles, TestGoFiles, XTestGoFiles []string
}

// list reads the packages that match the patterns.
func list(t *testing.T, args ...string) []listed {
	t.Helper()
	fields := "-json=ImportPath,Standard,Imports,Dir,GoFiles,TestGoFiles,XTestGoFiles"
	decoder := json.NewDecoder(bytes.NewReader(command(t, "go", append([]string{"list", "-e", fields}, args...)...)))
	var packages []listed
	for {
		var p listed
		switch err := decoder.Decode(&p); {
		case errors.Is(err, io.EOF):
			return packages
		case err != nil:
			t.Fatalf("go list: %v", err)
		}
		packages = append(packages, p)
	}
}
