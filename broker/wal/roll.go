package wal

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"felix.dev/felix/broker/vfs"
)

// spare is a file that was dropped: its blocks are allocated, so that writing it
// again needs no change of the file system's own records.
type spare struct {
	path string
	size int64
}

const maxSpares = 2

// roll begins the next file; the committer's, or Open's. A file gets its name when its
// header is on disk, and a batch is written to it when its name is. Until the rename an
// error leaves everything as it was.
func (l *Log) roll() error {
	var nonce [8]byte
	if _, err := io.ReadFull(l.cfg.random, nonce[:]); err != nil {
		return l.wrap("random", err)
	}
	h := fileHeader{number: l.lastFile + 1, log: l.id, first: l.number, nonce: binary.BigEndian.Uint64(nonce[:])}
	f := &file{number: h.number, path: l.path(h.number), first: h.first, seed: h.seed(), pins: make(map[owner]uint64)}
	tmp := filepath.Join(l.cfg.Dir, newName)
	flags := os.O_RDWR | os.O_CREATE | os.O_TRUNC
	if s, ok := l.takeSpare(); ok {
		tmp, f.filled, flags = s.path, s.size, os.O_RDWR
	}
	var err error
	if f.w, err = l.fs.OpenFile(tmp, flags, filePerm); err != nil {
		return l.refuse("create file", err)
	}
	f.f = f.w
	_, err = f.w.WriteAt(encodeFileHeader(&h), 0)
	if err == nil {
		err = l.sync(f)
	}
	if err == nil {
		err = l.fs.Rename(tmp, f.path)
	}
	if err != nil {
		f.close()
		_ = l.fs.Remove(tmp) // Open removes it too
		return l.refuse("create file", err)
	}
	l.lastFile = h.number
	f.end.Store(fileHeaderLen)
	f.filled = max(f.filled, fileHeaderLen)
	l.syncDir = true
	l.mu.Lock()
	l.files = append(l.files, f)
	l.mu.Unlock()
	l.active = f
	wake(l.work)
	return l.syncNames()
}

// syncNames makes the files' names durable, if they may not be.
func (l *Log) syncNames() error {
	if !l.syncDir {
		return nil
	}
	if err := l.fs.SyncDir(l.cfg.Dir); err != nil {
		return l.fail("sync directory", err)
	}
	l.syncDir = false
	return nil
}

func (l *Log) takeSpare() (spare, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.spares)
	if n == 0 {
		return spare{}, false
	}
	s := l.spares[n-1]
	l.spares = l.spares[:n-1]
	return s, true
}

// makeDir makes the log's directory, and who it is, before its first file.
func (l *Log) makeDir() error {
	if err := vfs.MkdirAllSync(l.fs, l.cfg.Dir, dirPerm); err != nil {
		return l.refuse("create directory", err)
	}
	return nil
}

// removeTemps removes files without a name: nothing in them is needed. That it can't
// is no reason not to open.
func (l *Log) removeTemps(names []string) {
	for _, name := range names {
		if err := l.fs.Remove(filepath.Join(l.cfg.Dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			l.log.Debug("left-over file stays", "dir", l.cfg.Dir, "name", name, "err", err)
		}
	}
}
