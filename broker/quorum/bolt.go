package quorum

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
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

// sound says what is wrong with a bolt file before bolt sees it. bolt maps a file into
// memory by what the file says of itself. And of its two heads, written in turns, it takes
// the older one when the newer is damaged: that would take back a vote. A crash damages
// neither, for what counts of a head is in one sector.
func sound(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was read only
	info, err := f.Stat()
	if err != nil {
		return err
	}
	var head [boltHeadBytes]byte
	if _, err := f.ReadAt(head[:], boltPageHeader); err != nil {
		return fmt.Errorf("%w: it has %d bytes", errBoltHead, info.Size())
	}
	page := int64(binary.NativeEndian.Uint32(head[8:]))
	if !boltHead(head[:]) || page < minBoltPage || info.Size() < 4*page || info.Size()%page != 0 {
		return fmt.Errorf("%w: the first, in a file of %d bytes", errBoltHead, info.Size())
	}
	if _, err := f.ReadAt(head[:], page+boltPageHeader); err != nil || !boltHead(head[:]) {
		return fmt.Errorf("%w: the second, in a file of %d bytes", errBoltHead, info.Size())
	}
	return nil
}

var errBoltHead = errors.New("damaged head")

const (
	minBoltPage    = 1024
	boltPageHeader = 16
	boltHeadBytes  = 64 // magic, version, page size, flags, root and its sequence, free list, pages, transaction, checksum
)

// boltHead tells whether a head has the checksum that it says.
func boltHead(head []byte) bool {
	sum := fnv.New64a()
	_, _ = sum.Write(head[:boltHeadBytes-8])
	return sum.Sum64() == binary.NativeEndian.Uint64(head[boltHeadBytes-8:])
}
