package auth

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"felix.dev/felix/broker/vfs"
)

func TestSaveAndLoadKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key.pem")
	key := newKey(t)
	if err := SaveKey(vfs.OS, path, key); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o600 {
		t.Errorf("got mode %o, want 600", got)
	}
	back, err := LoadKey(vfs.OS, path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(back, key); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
	if err := SaveKey(vfs.OS, path, newKey(t)); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a key was replaced: %v", err)
	}
	if again, err := LoadKey(vfs.OS, path); err != nil || again.ID != key.ID {
		t.Errorf("got %v, %v", again.ID, err)
	}
}

func TestLoadKeyNamesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key.pem")
	if _, err := LoadKey(vfs.OS, path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if err := os.WriteFile(path, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := LoadKey(vfs.OS, path)
	if err == nil || !filepath.IsAbs(err.Error()[:len(path)]) {
		t.Errorf("got %v, want the path in front", err)
	}
}
