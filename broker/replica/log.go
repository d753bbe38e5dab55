package replica

import (
	"sync"
	"sync/atomic"
	"time"

	"felix.dev/felix/broker/seglog"
	"felix.dev/felix/broker/stream"
)

// Log is what a replica needs of a shard's log.
type Log interface {
	stream.Log
	// Err is why appends fail, as far as is known.
	Err() error
	// Sync returns when everything that was appended is on disk.
	Sync() error
	// TrimTo gives up what lies below an offset.
	TrimTo(offset uint64) (removed int, err error)
	// Reset drops everything and goes on at base.
	Reset(base uint64) error
	// TrimPoint is the first offset that retention keeps.
	TrimPoint(maxBytes int64, maxAge time.Duration) (uint64, error)
	// Records reads whole records, see seglog.Log.Records.
	Records(from uint64, maxBytes int, buf []byte) ([]seglog.Record, []byte, error)
}

// Segments is the Log of a segmented log.
func Segments(l *seglog.Log) Log { return segments{stream.Segments(l), l} }

type segments struct {
	stream.Log
	l *seglog.Log
}

func (s segments) Err() error                        { return s.l.Err() }
func (s segments) Sync() error                       { return s.l.Sync() }
func (s segments) TrimTo(offset uint64) (int, error) { return s.l.TrimTo(offset) }
func (s segments) Reset(base uint64) error           { return s.l.Reset(base) }
func (s segments) TrimPoint(maxBytes int64, maxAge time.Duration) (uint64, error) {
	return s.l.TrimPoint(maxBytes, maxAge)
}

func (s segments) Records(from uint64, maxBytes int, buf []byte) ([]seglog.Record, []byte, error) {
	return s.l.Records(from, maxBytes, buf)
}

// openable is a log that can be closed and opened again under those who use it: a log
// that has failed takes nothing more until then.
type openable struct {
	open func() (Log, error)
	now  atomic.Pointer[Log]

	mu     sync.Mutex // one reopening, and Close against it; disk I/O
	closed bool
}

func newOpenable(open func() (Log, error)) (*openable, error) {
	o := &openable{open: open}
	l, err := open()
	if err != nil {
		return nil, err
	}
	o.now.Store(&l)
	return o, nil
}

// reopen closes the log, whatever it says to that, and opens it.
func (o *openable) reopen() error { return o.again(func() error { return nil }) }

// again does something to the log's files between closing and opening it.
func (o *openable) again(meanwhile func() error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return seglog.ErrClosed
	}
	_ = o.log().Close() // it has failed: what could not be flushed is found, or brought back
	if err := meanwhile(); err != nil {
		return err
	}
	l, err := o.open()
	if err != nil {
		return err
	}
	o.now.Store(&l)
	return nil
}

func (o *openable) log() Log { return *o.now.Load() }

func (o *openable) Append(r []seglog.Record) error    { return o.log().Append(r) }
func (o *openable) Reader(from uint64) stream.Reader  { return o.log().Reader(from) }
func (o *openable) Next() uint64                      { return o.log().Next() }
func (o *openable) Oldest() uint64                    { return o.log().Oldest() }
func (o *openable) Stats() seglog.Stats               { return o.log().Stats() }
func (o *openable) Err() error                        { return o.log().Err() }
func (o *openable) Sync() error                       { return o.log().Sync() }
func (o *openable) TrimTo(offset uint64) (int, error) { return o.log().TrimTo(offset) }
func (o *openable) Reset(base uint64) error           { return o.log().Reset(base) }
func (o *openable) TrimPoint(maxBytes int64, maxAge time.Duration) (uint64, error) {
	return o.log().TrimPoint(maxBytes, maxAge)
}

func (o *openable) Records(from uint64, maxBytes int, buf []byte) ([]seglog.Record, []byte, error) {
	return o.log().Records(from, maxBytes, buf)
}

// Close closes it for good.
func (o *openable) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return nil
	}
	o.closed = true
	return o.log().Close()
}
