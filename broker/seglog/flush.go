package seglog

import (
	"fmt"
	"time"
)

// waitSync has everything that is written so far flushed, and the file's size, and
// waits for it. It returns ErrPoisoned if a flush failed. There is an active segment.
func (l *Log) waitSync() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed && l.failure == nil {
		return ErrClosed // there may be nobody to do it
	}
	l.wantSync++
	want := l.wantSync
	wake(l.kick)
	for l.doneSync < want && l.failure == nil {
		l.flushed.Wait()
	}
	return l.failure
}

// flushState is the flusher's own; no other goroutine touches it.
type flushState struct {
	committed uint64 // last reported to the owner
	reported  bool   // the failure was
	resets    uint64 // as of Log.resets

	timer   *time.Timer // FsyncInterval: until the next flush
	armed   bool
	done    chan error
	running *syncTask // a flush beside
}

// runFlusher flushes what was appended and reports it. It ends after Close, with
// everything flushed or the log poisoned.
func (l *Log) runFlusher(st flushState) {
	defer l.wg.Done()
	st.done = make(chan error, 1)
	st.timer = time.NewTimer(l.cfg.FsyncEvery)
	st.timer.Stop()
	defer st.timer.Stop()
	for {
		due := false
		select {
		case <-l.kick:
		case <-st.timer.C:
			st.armed, due = false, true
		case err := <-st.done:
			l.endSync(*st.running, err)
			st.running = nil
		case <-l.stopping:
			l.lastFlush(&st)
			return
		}
		if st.running == nil {
			l.flush(&st, due)
		}
		l.report(&st)
	}
}

// flush begins what has to be flushed, and does it here if nobody has to be told of
// anything meanwhile.
func (l *Log) flush(st *flushState, due bool) {
	asked := l.syncRequested()
	switch l.cfg.Fsync {
	case FsyncAlways:
		due = l.need.Load() > l.synced.Load()
	case FsyncInterval:
		if !due && !asked && !st.armed && l.failed() == nil && l.synced.Load() < l.next.Load() {
			st.timer.Reset(l.cfg.FsyncEvery)
			st.armed = true
		}
	case FsyncManual:
		due = false
	}
	if !due && !asked {
		return
	}
	t, ok := l.beginSync()
	if !ok {
		return
	}
	// With a journal, what it commits meanwhile is to be reported: a lone append is the
	// exception, nobody else is there to wait.
	if l.cfg.Fsync == FsyncAlways && l.inJournal.Load() == 0 && (!asked || l.cfg.Journal == nil) {
		l.endSync(t, t.sync())
		return
	}
	st.running = &t
	go func() { st.done <- t.sync() }() // received before the flusher ends
}

// lastFlush ends the flusher with everything on disk.
func (l *Log) lastFlush(st *flushState) {
	if st.running != nil {
		l.endSync(*st.running, <-st.done)
	}
	if t, ok := l.beginSync(); ok {
		l.endSync(t, t.sync())
	}
	l.report(st)
}

// syncTask is one flush: what it will have covered when it is done.
type syncTask struct {
	w     *writer
	next  uint64
	want  uint64
	began time.Time
}

func (t *syncTask) sync() error { return t.w.flush() }

// beginSync returns false when there is nothing to flush or no point in it.
func (l *Log) beginSync() (syncTask, bool) {
	l.mu.Lock()
	want, asked, failed := l.wantSync, l.wantSync > l.doneSync, l.failure != nil
	l.mu.Unlock()
	if failed {
		return syncTask{}, false
	}
	// The order matters: what next counts was written before it was loaded, and to
	// the writer loaded after it, because the appender changes writers only when
	// everything is flushed.
	next := l.next.Load()
	w := l.active.Load()
	if w == nil || (next == l.synced.Load() && !asked) {
		return syncTask{}, false
	}
	return syncTask{w: w, next: next, want: want, began: time.Now()}, true
}

func (l *Log) endSync(t syncTask, err error) {
	took := time.Since(t.began)
	l.syncs.Add(1)
	l.syncNanos.Add(int64(took))
	if l.cfg.Synced != nil {
		l.cfg.Synced(took, err)
	}
	if err != nil {
		l.poison(fmt.Errorf("%w: flush %s: %w", ErrPoisoned, t.w.seg.path, err))
		return
	}
	l.mu.Lock()
	l.synced.Store(t.next)
	l.doneSync = t.want
	l.advanceLocked()
	l.flushed.Broadcast()
	l.mu.Unlock()
	l.releaseJournal(t.next)
}

func (l *Log) syncRequested() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wantSync > l.doneSync && l.failure == nil
}

func (l *Log) failed() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failure
}

// report tells the owner what is committed, and once that nothing more will be.
func (l *Log) report(st *flushState) {
	l.mu.Lock()
	err, resets := l.failure, l.resets
	l.mu.Unlock()
	next := l.durable.Load()
	if l.cfg.Fsync != FsyncAlways && err == nil {
		next = l.next.Load()
	}
	if resets != st.resets {
		st.resets, st.committed = resets, 0
	}
	if st.reported {
		return
	}
	if next > st.committed {
		st.committed = next
		if l.cfg.Committed != nil {
			l.cfg.Committed(next, nil)
		}
	}
	if err != nil {
		st.reported = true
		if l.cfg.Committed != nil {
			l.cfg.Committed(st.committed, err)
		}
	}
}
