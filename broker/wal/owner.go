package wal

import "fmt"

// owner is what has a key: a journal or a store of entries.
type owner interface {
	common() *stream
	// pins says whether what was written for the owner up to a bound, in some file, is
	// still needed; with Log.mu held.
	pins(upTo uint64) bool
}

// stream is what all owners have.
type stream struct {
	l     *Log
	key   string
	space uint8

	// Guarded by Log.mu.
	id        uint32
	epoch     uint64 // the Log's epoch in which the id was declared last
	forgotten bool
}

func (s *stream) common() *stream { return s }

func checkKey(key string) error {
	if key == "" || len(key) > maxKeyBytes {
		return fmt.Errorf("wal: a key has 1 to %d bytes, not %d", maxKeyBytes, len(key))
	}
	return nil
}

func (l *Log) newStreamLocked(space uint8, key string) stream {
	l.lastID++
	return stream{l: l, key: key, space: space, id: l.lastID}
}

// Journal returns the journal with this key, new or as recovery found it. Keys have 1
// to 200 bytes.
func (l *Log) Journal(key string) (*Journal, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.journalLocked(key), nil
}

func (l *Log) journalLocked(key string) *Journal {
	j := l.journals[key]
	if j == nil {
		j = &Journal{stream: l.newStreamLocked(spaceJournal, key)}
		l.journals[key] = j
	}
	return j
}

// Entries returns the store with this key, new or as recovery found it. Keys have 1
// to 200 bytes.
func (l *Log) Entries(key string) (*Entries, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.entriesLocked(key), nil
}

func (l *Log) entriesLocked(key string) *Entries {
	e := l.stores[key]
	if e == nil {
		e = newEntries(l.newStreamLocked(spaceEntries, key))
		l.stores[key] = e
		l.shareCacheLocked()
	}
	return e
}

func (l *Log) forgetLocked(o owner) {
	s := o.common()
	if s.forgotten {
		return
	}
	s.forgotten = true
	if s.space == spaceJournal {
		delete(l.journals, s.key)
	} else {
		delete(l.stores, s.key)
		l.shareCacheLocked()
	}
}
