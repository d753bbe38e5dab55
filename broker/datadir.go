package broker

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/quic-go/quic-go"

	"felix.dev/felix/broker/catalog"
	"felix.dev/felix/broker/vfs"
)

const (
	lockName    = "lock"
	catalogName = "catalog.json"
	resetName   = "quic-reset.key"
	tlsName     = "tls"
	devName     = "dev"
	streamsName = "streams"
	// deletedName is the file in a stream's directory that says that the stream was
	// deleted on purpose, and with it its data.
	deletedName = "DELETED"

	dirPerm = 0o750
)

// ErrLocked says that another broker uses the data directory. It may end.
var ErrLocked = errors.New("the data directory is in use by another broker")

// dirLock is the right to a data directory. The system gives it up with the process,
// however that ends.
type dirLock struct{ f *os.File }

// lockDir makes the data directory if there is none, and takes it.
func lockDir(dir string) (*dirLock, error) {
	if err := vfs.MkdirAllSync(vfs.OS, dir, dirPerm); err != nil {
		return nil, fmt.Errorf("broker: data directory: %w", err)
	}
	path := filepath.Join(dir, lockName)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("broker: data directory: %w", err)
	}
	if err := lockFile(f); err != nil {
		return nil, errors.Join(fmt.Errorf("broker: %s: %w", path, err), f.Close())
	}
	// For people; a stale number is harmless, and so is none.
	if f.Truncate(0) == nil {
		_, _ = f.WriteString(strconv.Itoa(os.Getpid()) + "\n")
	}
	return &dirLock{f}, nil
}

func (l *dirLock) release() error { return l.f.Close() }

// resetKey reads the key of stateless resets, or makes it: with the same key after a
// restart, clients of before are told at once that their connections are gone.
func resetKey(path string) (*quic.StatelessResetKey, error) {
	var key quic.StatelessResetKey
	b, err := os.ReadFile(path)
	switch {
	case err == nil && len(b) == len(key):
		copy(key[:], b)
		return &key, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("broker: reset key: %w", err)
	}
	_, _ = rand.Read(key[:]) // documented never to fail
	if err := vfs.WriteFileAtomic(vfs.OS, path, key[:], 0o600); err != nil {
		return nil, fmt.Errorf("broker: reset key: %w", err)
	}
	return &key, nil
}

// incarnationDir is where the shards of one incarnation of a stream are.
func incarnationDir(dataDir string, e *catalog.Entry) string {
	n := e.Spec.Name
	return filepath.Join(dataDir, streamsName, n.Tenant, n.Namespace, n.Stream, e.Incarnation)
}

func shardDir(dataDir string, e *catalog.Entry, shard int) string {
	return filepath.Join(incarnationDir(dataDir, e), strconv.Itoa(shard))
}

// foldersOf are the folders of a stream's incarnation, or of a shard below one, whatever
// the stream's name is; "*": of all streams.
func foldersOf(dataDir, incarnation string) ([]string, error) {
	dirs, err := filepath.Glob(filepath.Join(dataDir, streamsName, "*", "*", "*", incarnation))
	if err != nil {
		return nil, fmt.Errorf("broker: data directory: %w", err)
	}
	return dirs, nil
}

// hasStreams says whether there is data of streams.
func hasStreams(dataDir string) (bool, error) {
	names, err := os.ReadDir(filepath.Join(dataDir, streamsName))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("broker: data directory: %w", err)
	}
	return len(names) > 0, nil
}
