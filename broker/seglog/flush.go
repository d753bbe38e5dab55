package seglog

import (
	"fmt"
	"time"
)

// waitSync has everything that is written so far flushed, and the file's size, and
// waits for it. The appender's; it returns ErrPoisoned if a flush failed.
func (l *Log) waitSync() error {
	l.mu.Lock()
	l.wantSync++
	want := l.wantSync
	l.mu.Unlock()
	wake(l.kick)
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.doneSync < want && l.failure == nil {
		l.flushed.Wait()
	}
	return l.failure
}

// flushState is the flusher's own; no other goroutine touches it.
type flushState struct {
	committed uint64 // last reported to the owner
	reported  bool   // the failure was
}

// runFlusher flushes what was appended and reports it. It ends after Close, with
// everything flushed or the log poisoned.
func (l *Log) runFlusher(st flushState) {
	defer l.wg.Done()
	if l.cfg.Fsync == FsyncInterval {
		l.flushInterval(&st)
		return
	}
	for {
		stop := false
		select {
		case <-l.kick:
		case <-l.stopping:
			stop = true
		}
		if t, ok := l.beginSync(); ok {
			l.endSync(t, t.sync())
			l.report(&st, l.durable.Load())
		}
		l.reportFailure(&st)
		if stop {
			return
		}
	}
}

// flushInterval reports what was written at once and flushes FsyncEvery after the
// first append that isn't flushed. A flush runs beside, so that one that takes long
// delays no report.
func (l *Log) flushInterval(st *flushState) {
	done := make(chan error, 1)
	var running *syncTask
	timer := time.NewTimer(l.cfg.FsyncEvery)
	timer.Stop()
	defer timer.Stop()
	armed := false
	for {
		stop := false
		select {
		case <-l.kick:
		case <-timer.C:
			armed = false
			if running == nil {
				running = l.startSync(done)
			}
		case err := <-done:
			l.endSync(*running, err)
			running = nil
		case <-l.stopping:
			stop = true
		}
		if l.failed() == nil {
			l.report(st, l.next.Load())
		}
		l.reportFailure(st)
		if stop {
			break
		}
		if running != nil {
			continue // what came in meanwhile is looked at when it is done
		}
		if l.syncRequested() {
			running = l.startSync(done)
		} else if !armed && l.failed() == nil && l.durable.Load() < l.next.Load() {
			timer.Reset(l.cfg.FsyncEvery)
			armed = true
		}
	}
	if running != nil {
		l.endSync(*running, <-done)
	}
	if t, ok := l.beginSync(); ok {
		l.endSync(t, t.sync())
	}
	l.reportFailure(st)
}

// syncTask is one flush: what it will have covered when it is done.
type syncTask struct {
	w     *writer
	next  uint64
	want  uint64
	began time.Time
}

func (t *syncTask) sync() error { return t.w.file.Datasync() }

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
	if w == nil || (next == l.durable.Load() && !asked) {
		return syncTask{}, false
	}
	return syncTask{w: w, next: next, want: want, began: time.Now()}, true
}

func (l *Log) startSync(done chan<- error) *syncTask {
	t, ok := l.beginSync()
	if !ok {
		return nil
	}
	go func() { done <- t.sync() }() // flushInterval receives it before it returns
	return &t
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
	l.durable.Store(t.next)
	l.doneSync = t.want
	l.flushed.Broadcast()
	l.mu.Unlock()
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

func (l *Log) report(st *flushState, next uint64) {
	if next <= st.committed {
		return
	}
	st.committed = next
	if l.cfg.Committed != nil {
		l.cfg.Committed(next, nil)
	}
}

func (l *Log) reportFailure(st *flushState) {
	err := l.failed()
	if err == nil || st.reported {
		return
	}
	st.reported = true
	if l.cfg.Committed != nil {
		l.cfg.Committed(st.committed, err)
	}
}
