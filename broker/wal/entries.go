package wal

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Entry is one entry of a store.
type Entry struct {
	Index, Term uint64 // an index is at least 1
	Type        uint8
	Data, Ext   []byte
	AppendedAt  time.Time // zero: none; kept to the nanosecond, in UTC
}

// Entries is an ordered store of entries with dense indexes, for a raft log. Its
// methods may be called from any goroutine; those that write wait for each other, those
// that read wait for no disk but to read an entry that is not recent.
type Entries struct {
	stream

	writing sync.Mutex // one change at a time; held while a commit is waited for
	result  chan outcome
	at      []uint32 // where the entries of an append are in their batch; guarded by writing
	stray   bool     // an append failed when a part of it was in the log; guarded by writing

	appending   bool          // what is being written is not held yet, and is needed; guarded by Log.mu
	first, last atomic.Uint64 // 0: none; changed with mu held

	mu    sync.Mutex // guards what follows; never held across I/O
	refs  []entryRef // of first to last
	cache cache
}

// entryRef is where an entry is.
type entryRef struct {
	file *file
	pos  uint32
	size uint32
}

func newEntries(s stream) *Entries { return &Entries{stream: s, result: make(chan outcome, 1)} }

func (e *Entries) pins(upTo uint64) bool {
	first := e.first.Load()
	return !e.forgotten && (e.appending || first != 0 && upTo >= first)
}

// First is the lowest index held; 0: none.
func (e *Entries) First() uint64 { return e.first.Load() }

// Last is the highest index held; 0: none.
func (e *Entries) Last() uint64 { return e.last.Load() }

// Get returns the entry with this index, or ErrNotFound. Its bytes must not be changed.
func (e *Entries) Get(index uint64) (Entry, error) {
	e.mu.Lock()
	ref, ok := e.refLocked(index)
	if !ok {
		e.mu.Unlock()
		return Entry{}, ErrNotFound
	}
	if entry, ok := e.cache.get(index, e.last.Load()); ok {
		e.mu.Unlock()
		return entry, nil
	}
	e.mu.Unlock()
	entry, err := e.read(ref, index)
	e.mu.Lock()
	now, ok := e.refLocked(index)
	e.mu.Unlock()
	if !ok {
		return Entry{}, ErrNotFound // and the file may have been dropped under the read
	}
	if now != ref {
		return e.Get(index) // replaced meanwhile
	}
	return entry, err
}

func (e *Entries) refLocked(index uint64) (entryRef, bool) {
	first := e.first.Load()
	if first == 0 || index < first || index > e.last.Load() {
		return entryRef{}, false
	}
	return e.refs[index-first], true
}

func (e *Entries) read(ref entryRef, index uint64) (Entry, error) {
	b := make([]byte, ref.size)
	if n, err := ref.file.f.ReadAt(b, int64(ref.pos)); n < len(b) {
		return Entry{}, e.l.wrap(fmt.Sprintf("read entry %d of %s", index, e.key), err)
	}
	var r record
	err := parseRecord(b, &r)
	if err == nil && (r.kind != kindEntry || r.a != index) {
		err = errBadRecord
	}
	if err != nil {
		return Entry{}, &CorruptionError{File: ref.file.path, Pos: int64(ref.pos), Reason: fmt.Sprintf("entry %d of %s: %v", index, e.key, err)}
	}
	return r.entry(), nil
}

// Append adds entries, durable when it returns nil. The first must follow the last
// one held; if none is held it may have any index from 1 on. After an error none of
// them is held, though after a crash some may be. Data and Ext are kept for a while:
// they must not be changed any more.
func (e *Entries) Append(entries []Entry) error {
	if len(entries) == 0 {
		return nil
	}
	e.writing.Lock()
	defer e.writing.Unlock()
	want := e.last.Load() + 1
	if want == 1 {
		want = max(entries[0].Index, 1)
	}
	for i := range entries {
		if entries[i].Index != want+uint64(i) {
			return fmt.Errorf("%w: %d after %d in %s", ErrGap, entries[i].Index, want+uint64(i)-1, e.key)
		}
		if size := entrySize(&entries[i]); size > maxItemBytes {
			return fmt.Errorf("wal: entry %d of %s has %d bytes, over the limit of %d", entries[i].Index, e.key, size, maxItemBytes)
		}
	}
	defer e.settle()
	refs := make([]entryRef, 0, len(entries))
	for rest := entries; len(rest) > 0; {
		n, size := 1, entrySize(&rest[0])
		for n < len(rest) && size+entrySize(&rest[n]) <= e.l.cfg.BatchBytes {
			size += entrySize(&rest[n])
			n++
		}
		var err error
		if refs, err = e.write(rest[:n], size, refs); err != nil {
			e.stray = e.stray || len(refs) > 0
			return err
		}
		rest = rest[n:]
	}
	e.keep(entries, refs)
	return nil
}

// write makes entries durable that fit into one batch, and adds where they are.
func (e *Entries) write(entries []Entry, size int, refs []entryRef) ([]entryRef, error) {
	b, err := e.l.begin(e, size)
	if err != nil {
		return refs, err
	}
	e.appending = true
	records := uint32(len(entries))
	if e.stray { // what is held ends before these, whatever is in the log
		b.buf = appendBound(b.buf, kindTruncateFrom, e.id, e.last.Load()+1)
		records++
	}
	e.at = e.at[:0]
	for i := range entries {
		e.at = append(e.at, uint32(len(b.buf)))
		b.buf = appendEntry(b.buf, e.id, &entries[i])
	}
	e.l.shared(&e.stream)
	e.l.appends.Add(uint64(len(entries)))
	e.l.appended.Add(int64(size))
	e.l.end(b, records, waiter{owner: e, upTo: entries[len(entries)-1].Index, result: e.result})
	o := <-e.result
	if o.err != nil {
		return refs, o.err
	}
	e.stray = false
	for i := range entries {
		refs = append(refs, entryRef{file: o.file, pos: uint32(o.pos) + e.at[i], size: uint32(entrySize(&entries[i]))})
	}
	return refs, nil
}

// settle ends an append.
func (e *Entries) settle() {
	e.l.mu.Lock()
	e.appending = false
	e.l.mu.Unlock()
}

// keep shows entries that are durable.
func (e *Entries) keep(entries []Entry, refs []entryRef) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.first.Load() == 0 {
		e.first.Store(entries[0].Index)
	}
	e.refs = append(e.refs, refs...)
	e.last.Store(entries[len(entries)-1].Index)
	e.cache.add(entries)
}

var errEntryGap = errors.New("an entry does not follow the last one")

// recovered takes an entry that recovery found; with Log.mu held.
func (e *Entries) recoveredLocked(index uint64, ref entryRef) error {
	if last := e.last.Load(); last != 0 {
		if index > last+1 {
			return errEntryGap
		}
		e.removeFromLocked(index)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.first.Load() == 0 {
		e.first.Store(index)
	}
	e.last.Store(index)
	e.refs = append(e.refs, ref)
	return nil
}
