package wal

import (
	"fmt"
	"os"
)

// repair is what has to be done before the log can be appended to.
type repair struct {
	dir bool // the directory may not be there
	// The last batch may be in the machine's memory only, and a flush that failed
	// earlier may have left it there for good: it is written again, not just flushed.
	pos, size int64
}

// repairNow does it. On an error it may be tried again, unless the log was poisoned.
func (l *Log) repairNow() error {
	r := l.todo
	if r == nil {
		return nil
	}
	if r.dir {
		if err := l.makeDir(); err != nil {
			return err
		}
		r.dir = false
	}
	if f := l.active; f != nil && f.w == nil {
		w, err := l.fs.OpenFile(f.path, os.O_RDWR, 0)
		if err != nil {
			return l.refuse("open "+f.path, err)
		}
		f.w = w
	}
	if r.size > 0 {
		if err := l.rewrite(l.active, r.pos, r.size); err != nil {
			return err
		}
	}
	l.todo = nil
	return nil
}

func (l *Log) rewrite(f *file, pos, size int64) error {
	b := make([]byte, size)
	if n, err := f.f.ReadAt(b, pos); int64(n) < size {
		return l.wrap("read "+f.path, err)
	}
	if _, err := f.w.WriteAt(b, pos); err != nil {
		return l.fail("write "+f.path+" in", err)
	}
	if err := l.sync(f); err != nil {
		err = fmt.Errorf("%w: flush %s: %w", ErrPoisoned, f.path, err)
		l.poison(err)
		return err
	}
	return nil
}
