package stream

import (
	"errors"

	"felix.dev/felix/broker/seglog"
	"felix.dev/felix/broker/wire"
)

// Log is what a shard needs of the thing that keeps its records. A shard without
// one is a memory stream; Segments makes one of a segmented log.
type Log interface {
	// Append takes one claim. It returns before the claim is committed; the log
	// reports commits through the callback it was opened with, in order.
	Append(records []seglog.Record) error
	// Reader reads on from an offset; it belongs to one goroutine and needs no close.
	Reader(from uint64) Reader
	Next() uint64
	Oldest() uint64
	Stats() seglog.Stats
	Close() error
}

// Reader reads a log in order, below a limit, in pages of whole frames.
type Reader interface {
	Seek(offset uint64)
	Read(limit uint64, maxBytes int, buf []byte) (seglog.Page, error)
}

// Segments is the Log of a segmented log on this broker's disk.
func Segments(l *seglog.Log) Log { return segments{l} }

type segments struct{ *seglog.Log }

func (s segments) Reader(from uint64) Reader {
	c := s.NewCursor(from)
	c.AskAbove = largePiece
	return c
}

// appendError says what a failed append means to the publishers in it: nothing of
// it was written, so that sending again is safe, unless the log is poisoned. Then
// nobody knows what the failed write left on the disk.
func appendError(err error) *Error {
	switch {
	case errors.Is(err, seglog.ErrDiskFull), errors.Is(err, seglog.ErrReadOnly):
		return &Error{Code: wire.CodeOverloaded, Retry: wire.RetryAfter, RetryAfter: diskRetry, Reason: "storage", Message: "the log cannot be written now", Err: err}
	case errors.Is(err, seglog.ErrPoisoned):
		return commitError(err)
	case errors.Is(err, seglog.ErrClosed):
		return &Error{Code: wire.CodeShardUnavailable, Retry: wire.RetryNow, Reason: "not_ready", Message: "the shard is closing", Err: err}
	}
	return &Error{Code: wire.CodeStorage, Retry: wire.RetryAfter, RetryAfter: diskRetry, Message: "the log refuses writes; nothing was written", Err: err}
}

// commitError is for publishes that may have been written but are not committed.
func commitError(err error) *Error {
	return &Error{Code: wire.CodeStorage, Retry: wire.RetryOutcomeUnknown, Message: "the write could not be confirmed", Err: err}
}

// Hooks are what a log calls: the shard's side of seglog.Config.
type Hooks struct {
	Committed     func(next uint64, err error)
	OnRecover     func(seglog.Record)
	RestoreState  func([]byte) error
	SnapshotState func() []byte
}
