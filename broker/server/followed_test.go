package server

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A file that is written in two goes within one tick of the file system's clock is
// read again, although neither its time nor its size tells.
func TestFollowedWithinOneTick(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	now := time.Now()
	tick := now
	write := func(content string) {
		t.Helper()
		if err := errors.Join(os.WriteFile(file, []byte(content), 0o600), os.Chtimes(file, tick, tick)); err != nil {
			t.Fatal(err)
		}
	}
	var reports []error
	f := &followed[string]{
		files: []string{file}, now: func() time.Time { return now },
		read: func() (string, error) {
			b, err := os.ReadFile(file)
			if err == nil && string(b) == "half" {
				err = errors.New("half a file")
			}
			return string(b), err
		},
		changed: func(_ string, err error) { reports = append(reports, err) },
	}
	write("one.")
	if err := follow(f); err != nil {
		t.Fatal(err)
	}
	tick = tick.Add(time.Second)
	now = tick
	write("half")
	if got := f.get(); got != "one." {
		t.Errorf("got %q", got)
	}
	write("two.") // the same time, the same size
	now = now.Add(followEvery)
	if got := f.get(); got != "two." {
		t.Errorf("got %q", got)
	}
	if len(reports) != 2 || reports[0] == nil || reports[1] != nil {
		t.Errorf("reported %v", reports)
	}
	// Once its time is old it is not read again.
	reads, read := 0, f.read
	f.read = func() (string, error) { reads++; return read() }
	for range 6 {
		now = now.Add(followEvery)
		f.get()
	}
	if reads > int(racyFor/followEvery) || len(reports) != 2 {
		t.Errorf("%d reads of a file that does not change, %d reports", reads, len(reports))
	}
}
