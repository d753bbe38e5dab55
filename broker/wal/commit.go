package wal

import (
	"fmt"
	"time"
)

// runCommitter writes and flushes what waits, batch by batch: one write and one flush
// for all who came while the one before was under way. It ends after Close, with
// everything written or refused.
func (l *Log) runCommitter() {
	defer l.wg.Done()
	defer close(l.stopped)
	for {
		stop := false
		select {
		case <-l.kick:
		case <-l.stopping:
			stop = true
		}
		for {
			b := l.takeBatch(stop)
			if b == nil {
				break
			}
			l.commit(b)
		}
		if stop {
			return
		}
	}
}

// takeBatch returns what is to be written: nil if nobody waits. What nobody waits for
// is written with what somebody does, and in the end.
func (l *Log) takeBatch(last bool) *batch {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.pending
	if b.empty() || len(b.waiters) == 0 && (l.failure != nil || !last && l.crowd == 0) {
		return nil
	}
	if l.failure == nil {
		if b.roll {
			l.planned = fileHeaderLen
		}
		l.planned += int64(len(b.buf)) + batchTrailerLen
	}
	l.pending, l.unused = l.unused, nil
	l.room.Broadcast()
	return b
}

// commit writes and flushes a batch and tells who waits for it.
func (l *Log) commit(b *batch) {
	pos, err := int64(0), l.failed()
	if err == nil {
		pos, err = l.write(b)
	}
	if err != nil {
		l.refuseBatch(b, err)
		return
	}
	f := l.active
	l.number++
	l.commits.Add(1)
	l.mu.Lock()
	f.end.Store(pos + int64(len(b.buf)))
	for i := range b.waiters {
		if w := &b.waiters[i]; w.upTo > 0 {
			f.pinLocked(w.owner, w.upTo)
		}
	}
	l.mu.Unlock()
	l.tell(b.waiters, outcome{file: f, pos: pos})
	l.giveBack(b)
}

func (l *Log) failed() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failure
}

func (l *Log) tell(waiters []waiter, o outcome) {
	for i := range waiters {
		if w := &waiters[i]; w.done != nil {
			w.done(w.from, w.upTo, o.err)
		} else {
			w.result <- o // has room
		}
	}
}

func (l *Log) giveBack(b *batch) {
	b.reset()
	l.mu.Lock()
	l.unused = b
	l.mu.Unlock()
}

// write puts a batch into the active file and flushes it.
func (l *Log) write(b *batch) (pos int64, err error) {
	if err := l.ready(b); err != nil {
		return 0, err
	}
	f := l.active
	pos = f.end.Load()
	b.buf = sealBatch(b.buf, f.seed, l.number, b.records)
	if _, err := f.w.WriteAt(b.buf, pos); err != nil {
		return 0, l.fail("write "+f.path+" in", err)
	}
	if err := f.fillAhead(pos+int64(len(b.buf)), l.cfg.FileBytes); err != nil {
		l.log.Debug("the file is not filled ahead", "file", f.path, "err", err)
	}
	if err := l.sync(f); err != nil {
		err = fmt.Errorf("%w: flush %s: %w", ErrPoisoned, f.path, err)
		l.poison(err)
		return 0, err
	}
	return pos, nil
}

// ready does what must come before a write: what Open had to put off, the next file.
func (l *Log) ready(b *batch) error {
	if err := l.repairNow(); err != nil {
		return err
	}
	if err := l.syncNames(); err != nil {
		return err
	}
	if b.roll || l.active == nil {
		return l.roll()
	}
	return nil
}

func (l *Log) sync(f *file) error {
	began := time.Now()
	err := f.w.Datasync()
	took := time.Since(began)
	l.syncs.Add(1)
	l.syncNanos.Add(int64(took))
	if l.cfg.Synced != nil {
		l.cfg.Synced(took, err)
	}
	return err
}

// refuseBatch tells everybody who waits that nothing was written, also those who came
// meanwhile: what they have may follow what was refused.
func (l *Log) refuseBatch(b *batch, err error) {
	l.mu.Lock()
	later := l.pending
	l.pending = newBatch()
	l.epoch++ // what these two declare is not in the file
	l.planned = l.cfg.FileBytes
	if l.active != nil {
		l.planned = l.active.end.Load()
	}
	l.room.Broadcast()
	l.mu.Unlock()
	l.tell(b.waiters, outcome{err: err})
	l.tell(later.waiters, outcome{err: err})
	l.giveBack(b)
}
