package wal

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"felix.dev/felix/broker/vfs"
)

const windowLen = 1 << 20

// window reads a file from front to back, a piece at a time.
type window struct {
	f    vfs.File
	size int64
	buf  []byte
	at   int64 // of buf in the file
}

// peek returns up to n bytes at pos, fewer only at the end of the file. They are valid
// until the next call.
func (w *window) peek(pos int64, n int) ([]byte, error) {
	if off := pos - w.at; off >= 0 && off+int64(n) <= int64(len(w.buf)) {
		return w.buf[off : off+int64(n)], nil
	}
	want := min(int64(max(n, windowLen)), max(w.size-pos, 0))
	if int64(cap(w.buf)) < want {
		w.buf = make([]byte, want)
	}
	got, err := w.f.ReadAt(w.buf[:want], pos)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	w.buf, w.at = w.buf[:got], pos
	return w.buf[:min(n, got)], nil
}

// scanner reads the batches of a file one after another.
type scanner struct {
	w    window
	path string
	seed uint32
	pos  int64  // of the next batch
	next uint64 // its number
	last int64  // where the one before begins; 0: there was none

	reason string // why there is no batch at pos
	torn   int64  // with a reason: how long the batch is that should be there, if its header says so
}

// batch calls f with the records of the next batch and moves behind it; false means
// that there is none. A batch whose checksums are right and whose records make no sense
// is damage.
func (s *scanner) batch(f func(*record) error) (bool, error) {
	b, err := s.w.peek(s.pos, batchHeaderLen)
	if err != nil {
		return false, err
	}
	h, ok := parseBatchHeader(b, s.seed)
	if !ok || h.number != s.next {
		s.reason, s.torn = "no batch begins here", 0
		return false, nil
	}
	if b, err = s.w.peek(s.pos, h.size()); err != nil {
		return false, err
	}
	if len(b) < h.size() {
		s.reason, s.torn = "the file ends inside a batch", int64(len(b))
		return false, nil
	}
	body := b[batchHeaderLen : batchHeaderLen+h.length]
	if !h.bodyOK(body, b[batchHeaderLen+h.length:]) {
		s.reason, s.torn = "a batch's checksum does not match", int64(h.size())
		return false, nil
	}
	at, n := 0, uint32(0)
	for at < len(body) {
		var r record
		err := parseRecord(body[at:], &r)
		if err == nil {
			r.pos = s.pos + batchHeaderLen + int64(at)
			err = f(&r)
		}
		if err != nil {
			return false, &CorruptionError{File: s.path, Pos: s.pos + batchHeaderLen + int64(at), Reason: err.Error()}
		}
		at += r.size
		n++
	}
	if n != h.records {
		return false, &CorruptionError{File: s.path, Pos: s.pos, Reason: fmt.Sprintf("a batch says %d records and holds %d", h.records, n)}
	}
	s.last = s.pos
	s.pos += int64(h.size())
	s.next++
	return true, nil
}

// later says whether a batch that was written after the one at pos is found behind it.
// It was written when that one had been flushed; so what is unreadable had been
// durable.
func (s *scanner) later() (bool, error) {
	for pos := s.pos; pos < s.w.size; {
		b, err := s.w.peek(pos, windowLen)
		if err != nil {
			return false, err
		}
		for at := 0; ; {
			i := bytes.Index(b[at:], []byte(batchMagic))
			if i < 0 {
				break
			}
			at += i
			if at >= 4 {
				if h, ok := parseBatchHeader(b[at-4:], s.seed); ok && h.number > s.next {
					return true, nil
				}
			}
			at++
		}
		if len(b) < windowLen {
			break
		}
		pos += windowLen - batchHeaderLen
	}
	return false, nil
}

// ids resolves the ids of one file's records, as scanning goes on.
type ids map[uint32]owner

var errUnknownID = errors.New("a record's id was not declared")
