package wal

import "time"

// Entry is one entry of a store.
type Entry struct {
	Index, Term uint64
	Type        uint8
	Data, Ext   []byte
	AppendedAt  time.Time // zero: none
}

// Entries is an ordered store of entries with dense indexes, for a raft log. Its
// methods may be called from any goroutine; those that write wait for each other.
type Entries struct{ l *Log }

// Entries returns the store with this key, new or as recovery found it. Keys have 1
// to 200 bytes.
func (l *Log) Entries(key string) (*Entries, error) { return &Entries{l: l}, nil }

// First is the lowest index held; 0: none.
func (e *Entries) First() uint64 { return 0 }

// Last is the highest index held; 0: none.
func (e *Entries) Last() uint64 { return 0 }

// Get returns the entry with this index, or ErrNotFound. Its bytes must not be changed.
func (e *Entries) Get(index uint64) (Entry, error) { return Entry{}, ErrNotFound }

// Append adds entries, durable when it returns nil. The first must follow the last
// one held; if none is held it may have any index from 1 on. After an error none of
// them is held. Data and Ext are kept for a while: they must not be changed any more.
func (e *Entries) Append(entries []Entry) error { return ErrClosed }

// TruncateFrom removes the entries from index on, durable when it returns nil.
func (e *Entries) TruncateFrom(index uint64) error { return ErrClosed }

// TruncateTo removes the entries below index, durable when it returns nil.
func (e *Entries) TruncateTo(index uint64) error { return ErrClosed }

// Forget removes everything and ends the store, durable when it returns nil.
func (e *Entries) Forget() error { return ErrClosed }
