package server

import (
	"errors"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"
)

const (
	// followEvery is how often at most handshakes look whether files changed.
	followEvery = time.Second
	// racyFor is how young a file's time may be for it to change again without its
	// time or size telling.
	racyFor = 2 * time.Second
)

// followed is something made of files, made anew when they change. A change that
// cannot be read is reported, and the last good value stays in use. Safe for
// concurrent use.
type followed[T any] struct {
	files []string
	read  func() (T, error)
	// changed is told of each change, good or bad.
	changed func(now T, err error)
	now     func() time.Time

	mu      sync.Mutex
	checked time.Time
	seen    []fileMark
	settled bool // what was seen cannot have changed unseen
	bad     bool // what was seen could not be read
	value   T
}

// fileMark changes when a file is written or replaced.
type fileMark struct {
	info os.FileInfo // nil: it is not there
}

func (m fileMark) same(o fileMark) bool {
	if m.info == nil || o.info == nil {
		return m.info == o.info
	}
	return os.SameFile(m.info, o.info) && m.info.ModTime().Equal(o.info.ModTime()) && m.info.Size() == o.info.Size()
}

// follow reads the files for the first time, when an error is an error. A nil now is
// the system's clock.
func follow[T any](f *followed[T]) error {
	if f.now == nil {
		f.now = time.Now
	}
	now := f.now()
	seen, err := f.marks()
	if err != nil {
		return err
	}
	if f.value, err = f.read(); err != nil {
		return err
	}
	f.checked, f.seen, f.settled = now, seen, settled(seen, now)
	return nil
}

// get is the value of today.
func (f *followed[T]) get() T {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := f.now(); now.Sub(f.checked) >= followEvery || now.Before(f.checked) {
		f.checked = now
		f.refresh(now)
	}
	return f.value
}

// refresh reads the files again if they may have changed. The caller holds mu.
func (f *followed[T]) refresh(now time.Time) {
	seen, err := f.marks()
	same := slices.EqualFunc(seen, f.seen, fileMark.same)
	if same && f.settled {
		return
	}
	f.seen, f.settled = seen, settled(seen, now)
	var value T
	if err == nil {
		value, err = f.read()
	}
	if report := !same || f.bad != (err != nil); report {
		f.changed(value, err)
	}
	f.bad = err != nil
	if err == nil {
		f.value = value
	}
}

func (f *followed[T]) marks() ([]fileMark, error) {
	marks := make([]fileMark, len(f.files))
	var errs []error
	for i, name := range f.files {
		var err error
		if marks[i].info, err = os.Stat(name); err != nil {
			errs = append(errs, err)
		}
	}
	return marks, errors.Join(errs...)
}

func settled(marks []fileMark, now time.Time) bool {
	return !slices.ContainsFunc(marks, func(m fileMark) bool {
		return m.info != nil && now.Sub(m.info.ModTime()) < racyFor
	})
}

// orDiscard is a log that may be nil.
func orDiscard(log *slog.Logger) *slog.Logger {
	if log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return log
}
