package term

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestNoTerminal(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for name, w := range map[string]any{"a buffer": &bytes.Buffer{}, "a file": f} {
		if IsTerminal(w) || Width(w) != 0 {
			t.Errorf("%s is taken for a terminal", name)
		}
	}
}
