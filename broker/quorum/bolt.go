package quorum

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"time"

	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"
)

// boltValues keeps values in a bolt file, the one of raft-boltdb. Nothing else is in
// it, so it stays at a few pages and has no free list to speak of (B78).
type boltValues struct{ store *raftboltdb.BoltStore }

var errPanic = errors.New("bolt gave up")

// openBolt opens or makes the file.
func openBolt(path string) (StateStore, error) {
	if err := sound(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var b boltValues
	err := guarded(func() (err error) {
		b.store, err = raftboltdb.New(raftboltdb.Options{
			Path: path,
			// The list of free pages stays in the file: without it bolt looks for them in a
			// goroutine, where a damaged file would end the process.
			BoltOptions: &bbolt.Options{Timeout: time.Second, FreelistType: bbolt.FreelistMapType, NoStatistics: true},
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	return b, nil
}

// guarded turns a panic of bolt, or its reading beyond a file that is too short, into an error (B79).
func guarded(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errPanic, p)
		}
	}()
	return f()
}

func (b boltValues) Get(key string) (v []byte, err error) {
	err = guarded(func() (err error) {
		v, err = b.store.Get([]byte(key))
		return err
	})
	if errors.Is(err, raftboltdb.ErrKeyNotFound) {
		return nil, nil
	}
	return v, err
}

func (b boltValues) Set(key string, value []byte) error {
	return guarded(func() error { return b.store.Set([]byte(key), value) })
}

func (b boltValues) Close() error { return guarded(b.store.Close) }

// sound says what is wrong with a bolt file before bolt sees it: bolt maps a file into
// memory by what the file says of itself.
func sound(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if size := info.Size(); size < minBoltBytes || size%minBoltPage != 0 {
		return fmt.Errorf("it has %d bytes", size)
	}
	return nil
}

const (
	minBoltPage  = 1024
	minBoltBytes = 4 * minBoltPage
)
