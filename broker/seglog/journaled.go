package seglog

import (
	"errors"
	"fmt"
	"hash/crc32"
	"os"

	"felix.dev/felix/broker/vfs"
)

// inJournal is what the journal says of a log that is being opened.
type inJournal struct {
	next   uint64 // the end of what it and the segments hold together, without a gap
	stable uint64 // the segments had everything below it
	top    uint64 // the end of all that it holds
}

// lookAtJournal reads what the journal holds behind the last segment's records, which
// end at end. What follows a gap was never reported as durable: the gap is an append
// that the journal did not take, and that the segment lost.
func (l *Log) lookAtJournal(s *segment, end uint64) (inJournal, error) {
	more := inJournal{next: end, top: end}
	if l.cfg.Journal == nil {
		return more, nil
	}
	err := l.cfg.Journal.Replay(func(from, next uint64, data []byte) error {
		if next <= s.base {
			return nil // of an earlier segment, which was flushed as a whole
		}
		return eachJournaled(s, from, next, data, func(h *recordHeader, _ []byte) error {
			more.stable = max(more.stable, h.stable)
			more.top = max(more.top, h.next())
			if h.base <= more.next {
				more.next = max(more.next, h.next())
			}
			return nil
		})
	})
	if err != nil {
		return more, l.wrap("read journal", err)
	}
	return more, nil
}

// journalFloor raises the floor of a log without segments to what its journal holds: a
// segment gets its name before anything of it is in a journal.
func (l *Log) journalFloor(floor uint64) (uint64, error) {
	if l.cfg.Journal == nil {
		return floor, nil
	}
	err := l.cfg.Journal.Replay(func(_, next uint64, _ []byte) error {
		floor = max(floor, next)
		return nil
	})
	if err != nil {
		return floor, l.wrap("read journal", err)
	}
	return floor, nil
}

var errNotOurs = errors.New("what the journal holds is not of this log's last segment")

// eachJournaled calls f with the records of one append, as they were written to s.
func eachJournaled(s *segment, from, next uint64, data []byte, f func(h *recordHeader, record []byte) error) error {
	for len(data) > 0 {
		h, err := parseRecordHeader(data, s.seed)
		if err == nil && (h.base != from || h.size() > len(data)) {
			err = errNoContinue
		}
		if err == nil && crc32.Checksum(data[h.headerLen():h.size()], castagnoli) != h.bodyCRC {
			err = errBodyCRC
		}
		if err != nil {
			return fmt.Errorf("%w: offset %d: %w", errNotOurs, from, err)
		}
		if err := f(&h, data[:h.size()]); err != nil {
			return err
		}
		from, data = h.next(), data[h.size():]
	}
	if from != next {
		return fmt.Errorf("%w: it ends at offset %d, not %d", errNotOurs, from, next)
	}
	return nil
}

// takeFromJournal writes the records that only the journal holds behind those of the
// last segment, where they were. It can't wait: what they hold was acknowledged, and
// the owner has to see it now. The repair flushes them.
func (l *Log) takeFromJournal(s *segment, r *repair, rec *Recovery) error {
	f, err := l.fs.OpenFile(s.path, os.O_RDWR, 0)
	if err != nil {
		return l.refuse("open segment", err)
	}
	if err := l.rewriteFrom(f, s, r, rec); err != nil {
		return errors.Join(l.refuse("take records from the journal", err), f.Close())
	}
	if err := f.Close(); err != nil {
		return l.refuse("take records from the journal", err)
	}
	return nil
}

func (l *Log) rewriteFrom(f vfs.File, s *segment, r *repair, rec *Recovery) error {
	if r.cut {
		if err := f.Truncate(s.end.Load()); err != nil {
			return err
		}
	}
	next := l.next.Load()
	err := l.cfg.Journal.Replay(func(from, upTo uint64, data []byte) error {
		if upTo <= next {
			return nil
		}
		return eachJournaled(s, from, upTo, data, func(h *recordHeader, record []byte) error {
			if h.base != next {
				return nil // the segment has it, or it follows a gap
			}
			pos := s.end.Load()
			if _, err := f.WriteAt(record, pos); err != nil {
				return err
			}
			end := pos + int64(len(record))
			s.idx.add(h, pos, end, l.cfg.IndexEvery)
			s.end.Store(end)
			next = h.next()
			rec.Journaled++
			if l.cfg.OnRecover != nil {
				l.cfg.OnRecover(h.record(record[h.headerLen():]))
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	l.next.Store(next)
	r.cut = false
	return nil
}
