//go:build unix

package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// brokerIn finds the data folder that dir is or belongs to, if a broker is at work in it, and what is known of its
// process. It asks for a shared lock for a moment, which a broker that starts in that very moment would take for
// another broker.
func brokerIn(dir string) (folder, process string) {
	at, err := filepath.Abs(dir)
	if err != nil {
		return "", ""
	}
	for ; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "catalog.json")); err == nil && locked(filepath.Join(at, "lock")) {
			if pid, err := os.ReadFile(filepath.Join(at, "lock")); err == nil && len(pid) > 1 {
				process = " (process " + strings.TrimSpace(string(pid)) + ")"
			}
			return at, process
		}
		if at == filepath.Dir(at) {
			return "", ""
		}
	}
}

func locked(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // gives the lock up
	return errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK)
}
