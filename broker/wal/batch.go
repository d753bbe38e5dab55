package wal

import "fmt"

// keepBuf is the largest buffer that is kept for the next batch.
const keepBuf = 8 << 20

// batch is what one commit writes, as it is being gathered.
type batch struct {
	buf     []byte // begins with room for the header
	records uint32
	waiters []waiter // in the order of their records
	roll    bool     // it begins a new file
}

// waiter is who wants to hear of a commit: a journal through done, others through
// result.
type waiter struct {
	owner  owner
	upTo   uint64 // what the file is then needed for; 0: nothing
	from   uint64
	done   func(from, next uint64, err error)
	result chan<- outcome
}

// outcome is what became of a commit.
type outcome struct {
	err  error
	file *file
	pos  int64 // of the batch
}

func newBatch() *batch {
	b := &batch{}
	b.reset()
	return b
}

func (b *batch) reset() {
	if cap(b.buf) > keepBuf || b.buf == nil {
		b.buf = make([]byte, batchHeaderLen, 4<<10)
	}
	b.buf = b.buf[:batchHeaderLen]
	clear(b.buf)
	clear(b.waiters)
	b.waiters, b.records, b.roll = b.waiters[:0], 0, false
}

func (b *batch) empty() bool { return b.records == 0 }

// begin returns the batch to append size bytes of records to, with mu held and the
// owner's id declared, once there is room. With an error mu is not held.
func (l *Log) begin(o owner, size int) (*batch, error) {
	s := o.common()
	if size > maxItemBytes {
		return nil, fmt.Errorf("wal: append of %d bytes is over the limit of %d", size, maxItemBytes)
	}
	l.mu.Lock()
	for l.errLocked() == nil && !l.pending.empty() && len(l.pending.buf)+size > l.cfg.BatchBytes {
		l.crowd++
		wake(l.kick)
		l.room.Wait()
		l.crowd--
	}
	err := l.errLocked()
	if s.forgotten {
		err = fmt.Errorf("wal: %s was forgotten: %w", s.key, ErrClosed)
	}
	if err != nil {
		l.mu.Unlock()
		return nil, err
	}
	b := l.pending
	l.openBatchLocked(b)
	l.declareLocked(b, s)
	return b, nil
}

// openBatchLocked decides which file a batch goes to, before its first record.
func (l *Log) openBatchLocked(b *batch) {
	if b.empty() && !b.roll && l.planned >= l.cfg.FileBytes {
		b.roll = true
		l.epoch++
	}
}

func (l *Log) declareLocked(b *batch, s *stream) {
	if s.epoch != l.epoch {
		s.epoch = l.epoch
		b.buf = appendDeclare(b.buf, s.space, s.id, s.key)
		b.records++
	}
}

// end gives up mu after records were appended to the batch; somebody waits for them.
func (l *Log) end(b *batch, records uint32, w waiter) {
	b.records += records
	b.waiters = append(b.waiters, w)
	l.mu.Unlock()
	wake(l.kick)
}

// note adds a record that nobody waits for: it goes along with the next commit.
func (l *Log) noteLocked(s *stream, k kind, bound uint64) {
	if l.errLocked() != nil {
		return
	}
	b := l.pending
	l.openBatchLocked(b)
	l.declareLocked(b, s)
	if k == kindForget {
		b.buf = appendPrefix(b.buf, k, 0, s.id)
	} else {
		b.buf = appendBound(b.buf, k, s.id, bound)
	}
	b.records++
}
