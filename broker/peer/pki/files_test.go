package pki

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// issued makes a CA and a node's certificate in one directory.
func issued(t *testing.T, node string) string {
	t.Helper()
	dir := t.TempDir()
	if err := CreateCA(dir, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := Issue(dir, dir, node, time.Now()); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestFilesThatChange(t *testing.T) {
	dir := issued(t, "a")
	var log bytes.Buffer
	f, err := Open(In(dir), slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	first, err := f.Certificate()
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := f.Certificate(); again != first {
		t.Error("parsed anew though nothing changed")
	}

	if err := Issue(dir, dir, "b", time.Now()); err != nil {
		t.Fatal(err)
	}
	second, err := f.Certificate()
	if err != nil || !Names(second.Leaf, "b") || Names(second.Leaf, "a") {
		t.Errorf("after a change: %v, %v", second.Leaf.DNSNames, err)
	}
	if !f.Names("b") || !f.NotAfter().Equal(second.Leaf.NotAfter) {
		t.Error("Names and NotAfter do not follow")
	}

	// A new CA beside the old one.
	other := t.TempDir()
	if err := CreateCA(other, time.Now()); err != nil {
		t.Fatal(err)
	}
	before := f.CAs()
	appendFile(t, filepath.Join(dir, "ca.crt"), read(t, filepath.Join(other, "ca.crt")))
	if after := f.CAs(); after.Equal(before) {
		t.Error("the second CA is not trusted")
	}
	if got := strings.Count(log.String(), "reloaded"); got != 2 {
		t.Errorf("%d changes were logged, want 2:\n%s", got, &log)
	}
}

// TestFilesThatBreak: the last good ones stay in use, and trouble is told once.
func TestFilesThatBreak(t *testing.T) {
	dir := issued(t, "a")
	spare := t.TempDir()
	if err := Issue(dir, spare, "a", time.Now()); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"node.crt": []byte("garbage"),
		"node.key": read(t, filepath.Join(spare, "node.key")), // of another certificate
		"ca.crt":   read(t, filepath.Join(dir, "node.crt")),   // not a CA
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			f, err := Open(In(dir), slog.New(slog.NewTextHandler(&log, nil)))
			if err != nil {
				t.Fatal(err)
			}
			pair, _ := f.Certificate()
			cas := f.CAs()
			file := filepath.Join(dir, name)
			good := read(t, file)
			for _, bad := range [][]byte{content, nil, bytes.Repeat([]byte("x"), maxFile+1)} {
				write(t, file, good)
				f.CAs()
				_, _ = f.Certificate()
				log.Reset()
				write(t, file, bad)
				for range 3 {
					if got, err := f.Certificate(); got != pair || err != nil {
						t.Errorf("another certificate, or %v", err)
					}
					if got := f.CAs(); got != cas {
						t.Error("other CAs")
					}
				}
				if n := strings.Count(log.String(), "not reloaded"); n != 1 {
					t.Errorf("told %d times:\n%s", n, &log)
				}
				if _, err := Open(In(dir), nil); err == nil || !strings.Contains(err.Error(), file) {
					t.Errorf("opening what is broken: %v", err)
				}
			}
			write(t, file, good)
			log.Reset()
			if got, _ := f.Certificate(); got != pair || f.CAs() != cas {
				t.Error("what came back is not taken as what it was")
			}
			if !strings.Contains(log.String(), "reloaded") {
				t.Error("nobody is told that the trouble is over")
			}
		})
	}
}

func TestOpenWithoutFiles(t *testing.T) {
	_, err := Open(In(t.TempDir()), nil)
	if err == nil || !strings.Contains(err.Error(), "node.crt") || !strings.Contains(err.Error(), "ca.crt") {
		t.Errorf("got %v, want every file that lacks", err)
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func write(t *testing.T, name string, text []byte) {
	t.Helper()
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func appendFile(t *testing.T, name string, text []byte) {
	t.Helper()
	write(t, name, append(read(t, name), text...))
}
