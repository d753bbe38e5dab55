package seglog

import (
	"slices"
)

// Journal is where a log's appends are durable before its own segment is: one file
// that many logs share. The log gives up what its segment holds with Release, and
// asks for the rest when it is opened (Replay).
type Journal interface {
	// Append writes the bytes of [from, next), which it copies. It returns before they
	// are durable and calls done with them, once, in the order of the appends; done
	// does not block. It returns false, and has done nothing, if the log should rather
	// flush its segment.
	Append(from, next uint64, data []byte, done func(from, next uint64, err error)) bool
	// Replay calls f with what is held, in the order of the appends. It may hold what
	// was released, and what was not reported as durable.
	Replay(f func(from, next uint64, data []byte) error) error
	// Release says that everything below upTo is not needed any more.
	Release(upTo uint64)
	// Discard says that nothing that is held so far is needed any more, whatever its
	// offsets: they may be used again. That is durable when it returns nil.
	Discard() error
}

// span is a run of offsets, [from, next).
type span struct{ from, next uint64 }

// journal hands an append that was written to the segment to the journal, if it may
// and does take it. Otherwise the segment has to be flushed for it.
func (l *Log) journal(from, next uint64, data []byte) bool {
	if l.cfg.Journal == nil || l.cfg.Fsync != FsyncAlways || len(data) > l.cfg.JournalMax {
		return false
	}
	l.inJournal.Add(1)
	if l.cfg.Journal.Append(from, next, data, l.journaled) {
		return true
	}
	l.inJournal.Add(-1)
	return false
}

// onJournal is told what became of an append in the journal. One that failed there is
// in the segment, like any other: that is flushed then.
func (l *Log) onJournal(from, next uint64, err error) {
	if err != nil {
		raise(&l.need, next)
	} else {
		l.mu.Lock()
		l.held = append(l.held, span{from, next})
		l.advanceLocked()
		l.mu.Unlock()
	}
	l.inJournal.Add(-1)
	wake(l.kick)
}

// advanceLocked computes what is durable: what the segment holds, and what the journal
// holds without a gap behind that. An append that the journal did not take is such a
// gap, until the segment is flushed.
func (l *Log) advanceLocked() {
	durable := max(l.durable.Load(), l.synced.Load())
	n := 0
	for n < len(l.held) && l.held[n].from <= durable {
		durable = max(durable, l.held[n].next)
		n++
	}
	l.held = slices.Delete(l.held, 0, n)
	l.durable.Store(durable)
}

// releaseJournal gives up what the segments hold.
func (l *Log) releaseJournal(upTo uint64) {
	if l.cfg.Journal != nil {
		l.cfg.Journal.Release(upTo)
	}
}
