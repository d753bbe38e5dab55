package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"
)

// dropRetry is how long the keeper leaves a disk alone that refused to drop a file.
const dropRetry = time.Second

// runKeeper drops the files that nobody needs, oldest first.
func (l *Log) runKeeper() {
	defer l.wg.Done()
	timer := time.NewTimer(dropRetry)
	timer.Stop()
	defer timer.Stop()
	for {
		stop := false
		select {
		case <-l.work:
		case <-timer.C:
		case <-l.stopped: // after the last commit
			stop = true
		}
		trouble := ""
		if err := l.dropFiles(); err != nil {
			trouble = err.Error()
			timer.Reset(dropRetry)
		}
		if trouble != l.dropTrouble && trouble != "" {
			l.log.Warn("files of the write-ahead log cannot be dropped, it is tried again", "dir", l.cfg.Dir, "err", trouble)
		}
		l.dropTrouble = trouble
		if stop {
			return
		}
		if l.overfull() {
			wake(l.press)
		}
	}
}

func (l *Log) overfull() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.files) > 1 && l.bytesLocked() > l.cfg.MaxBytes
}

// dropFiles takes the names of files that are not needed, never of the last one.
// Each name is gone from the synced directory before the next one goes, so that files
// that are there follow each other. Of a poisoned log nothing is dropped.
func (l *Log) dropFiles() error {
	for {
		f := l.droppable()
		if f == nil {
			return nil
		}
		path := f.path
		if !f.renamed {
			l.spareCount++
			path = filepath.Join(l.cfg.Dir, fmt.Sprintf(spareName, l.spareCount))
			if err := l.fs.Rename(f.path, path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return l.wrap("drop "+f.path, err)
			}
			f.path, f.renamed = path, true
		}
		if err := l.fs.SyncDir(l.cfg.Dir); err != nil {
			return l.wrap("drop file", err)
		}
		size, err := f.f.Size()
		f.close()
		l.droppedFiles.Add(1)
		l.mu.Lock()
		l.files = append([]*file(nil), l.files[1:]...)
		keep := err == nil && len(l.spares) < maxSpares && size <= l.cfg.FileBytes+2*int64(l.cfg.BatchBytes)
		if keep {
			l.spares = append(l.spares, spare{path: path, size: size})
		}
		l.mu.Unlock()
		if !keep {
			if err := l.fs.Remove(path); err != nil {
				l.log.Debug("a dropped file stays until the next open", "file", path, "err", err)
			}
		}
	}
}

func (l *Log) droppable() *file {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failure != nil || len(l.files) < 2 || l.files[0].neededLocked() {
		return nil
	}
	return l.files[0]
}
