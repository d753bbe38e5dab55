package wal

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
)

// Recovery says what Open found and did.
type Recovery struct {
	Files    int
	Batches  uint64
	Bytes    int64
	Journals []string // keys that hold something, sorted: who opens the log forgets what nobody owns
	Entries  []string // likewise
	Cut      *Cut     // the torn tail; nil: there was none
	ReadOnly error    // why appends are refused for now; nil: they are not
}

// Cut describes a torn tail: what a crash left of a commit that it interrupted.
// Nothing in it was ever reported as durable.
type Cut struct {
	File   string
	Pos    int64
	Bytes  int64
	Reason string
}

// recover reads the directory, fills the log's fields and repairs it. It runs before
// the log has goroutines.
func (l *Log) recover() (Recovery, error) {
	var rec Recovery
	ls, err := list(l.fs, l.cfg.Dir)
	if err != nil {
		return rec, err
	}
	l.mu.Lock()
	err = l.readFiles(ls.files, &rec)
	l.mu.Unlock()
	if err != nil {
		return rec, err
	}
	l.removeTemps(ls.temps)
	l.todo.dir = l.active == nil
	l.syncDir = true // who made the last name may have died before it was durable
	if err := l.repairNow(); err != nil {
		rec.ReadOnly = err
	} else if l.active != nil {
		if err := l.syncNames(); err != nil {
			rec.ReadOnly = err
		}
	}
	if l.active == nil && rec.ReadOnly == nil {
		l.number = 1
		if err := l.roll(); err != nil {
			rec.ReadOnly = err
		}
	}
	l.planned = l.cfg.FileBytes
	if l.active != nil {
		l.planned = l.active.end.Load()
	}
	l.report(&rec)
	return rec, nil
}

func (l *Log) report(rec *Recovery) {
	rec.Files = len(l.files)
	for _, f := range l.files {
		rec.Bytes += f.end.Load()
	}
	for key, j := range l.journals {
		if j.top > j.released {
			rec.Journals = append(rec.Journals, key)
		}
	}
	for key, e := range l.stores {
		if e.last.Load() > 0 {
			rec.Entries = append(rec.Entries, key)
		}
	}
	slices.Sort(rec.Journals)
	slices.Sort(rec.Entries)
	if rec.Cut != nil {
		l.log.Warn("write-ahead log: torn tail cut", "file", rec.Cut.File, "pos", rec.Cut.Pos, "bytes", rec.Cut.Bytes, "reason", rec.Cut.Reason)
	}
	if rec.ReadOnly != nil {
		l.log.Error("write-ahead log opened for reading only", "dir", l.cfg.Dir, "err", rec.ReadOnly)
	}
}

// readFiles opens and reads all files.
func (l *Log) readFiles(numbers []uint64, rec *Recovery) error {
	l.todo = &repair{}
	l.number = 1
	var log [16]byte
	for i, number := range numbers {
		if i > 0 && number != numbers[i-1]+1 {
			return &CorruptionError{File: l.path(number - 1), Reason: fmt.Sprintf("it is missing, between files %d and %d", numbers[i-1], number)}
		}
		h, err := l.openFile(number)
		if err != nil {
			return err
		}
		if i == 0 {
			log, l.number = h.log, h.first
		}
		if h.log != log {
			return fmt.Errorf("%w: %s is of log %x, not %x", ErrFormat, l.path(number), h.log, log)
		}
	}
	l.id = log
	if len(numbers) == 0 {
		if _, err := io.ReadFull(l.cfg.random, l.id[:]); err != nil {
			return fmt.Errorf("wal: random: %w", err)
		}
		return nil
	}
	var sc *scanner
	for i, f := range l.files {
		var err error
		if sc, err = l.readFile(f, rec); err != nil {
			return err
		}
		if i < len(l.files)-1 && sc.next != l.files[i+1].first {
			return &CorruptionError{File: f.path, Pos: sc.pos, Reason: fmt.Sprintf("%s, but the next file begins with batch %d, not %d", sc.reason, l.files[i+1].first, sc.next)}
		}
	}
	l.active = l.files[len(l.files)-1]
	l.lastFile = l.active.number
	return l.judgeTail(sc, rec)
}

func (l *Log) openFile(number uint64) (fileHeader, error) {
	f := &file{number: number, path: l.path(number), pins: make(map[owner]uint64)}
	handle, err := l.fs.OpenFile(f.path, os.O_RDONLY, 0)
	if err != nil {
		return fileHeader{}, l.wrap("open "+f.path, err)
	}
	f.f = handle
	l.files = append(l.files, f)
	h, err := readFileHeader(handle, number)
	if err != nil {
		return h, err
	}
	f.seed, f.first = h.seed(), h.first
	if f.filled, err = handle.Size(); err != nil {
		return h, l.wrap("open "+f.path, err)
	}
	if f.filled > math.MaxUint32 {
		return h, fmt.Errorf("%w: %s has %d bytes", ErrFormat, f.path, f.filled)
	}
	return h, nil
}

// readFile takes what is in a file's batches, up to the first that can't be read.
func (l *Log) readFile(f *file, rec *Recovery) (*scanner, error) {
	sc := &scanner{w: window{f: f.f, size: f.filled}, path: f.path, seed: f.seed, pos: fileHeaderLen, next: l.number}
	if f.first != l.number {
		return nil, &CorruptionError{File: f.path, Reason: fmt.Sprintf("it begins with batch %d, not %d", f.first, l.number)}
	}
	known := make(ids)
	for {
		ok, err := sc.batch(func(r *record) error { return l.takeLocked(known, f, r) })
		if err != nil {
			if _, bad := errors.AsType[*CorruptionError](err); bad {
				return nil, err
			}
			return nil, l.wrap("read "+f.path, err)
		}
		if !ok {
			f.end.Store(sc.pos)
			l.number = sc.next
			return sc, nil
		}
		rec.Batches++
	}
}

// takeLocked does what a record says.
func (l *Log) takeLocked(known ids, f *file, r *record) error {
	if r.kind == kindDeclare {
		if r.typ == spaceJournal {
			known[r.id] = l.journalLocked(string(r.data))
		} else {
			known[r.id] = l.entriesLocked(string(r.data))
		}
		return nil
	}
	switch o := known[r.id].(type) {
	case *Journal:
		switch r.kind {
		case kindJournal:
			o.top = max(o.top, r.b)
			o.found = append(o.found, foundAt{file: f, next: r.b, pos: uint32(r.pos), size: uint32(r.size)})
			f.pinLocked(o, r.b)
			return nil
		case kindRelease:
			o.released = max(o.released, r.a)
			for len(o.found) > 0 && o.found[0].next <= r.a {
				o.found = o.found[1:]
			}
			return nil
		case kindDiscard:
			o.discardLocked()
			return nil
		case kindForget:
			l.forgetLocked(o)
			o.found = nil
			delete(known, r.id)
			return nil
		default:
		}
	case *Entries:
		switch r.kind {
		case kindEntry:
			err := o.recoveredLocked(r.a, entryRef{file: f, pos: uint32(r.pos), size: uint32(r.size)})
			f.pinLocked(o, r.a)
			return err
		case kindTruncateFrom:
			o.removeFromLocked(r.a)
			return nil
		case kindTruncateTo:
			o.removeTo(r.a)
			return nil
		case kindForget:
			l.forgetLocked(o)
			o.removeTo(math.MaxUint64)
			delete(known, r.id)
			return nil
		default:
		}
	default:
		return errUnknownID
	}
	return errBadRecord
}

// judgeTail decides what lies behind the last batch of the last file.
func (l *Log) judgeTail(sc *scanner, rec *Recovery) error {
	later, err := sc.later()
	if err != nil {
		return l.wrap("read "+sc.path, err)
	}
	if later {
		return &CorruptionError{File: sc.path, Pos: sc.pos, Reason: sc.reason + ", but it had been durable: a later one is there"}
	}
	if sc.torn > 0 {
		rec.Cut = &Cut{File: sc.path, Pos: sc.pos, Bytes: sc.torn, Reason: sc.reason}
	}
	if sc.last > 0 {
		l.todo = &repair{pos: sc.last, size: sc.pos - sc.last}
	}
	return nil
}
