package seglog

import (
	"errors"
	"hash/crc32"
	"io"
	"sync"

	"felix.dev/felix/broker/vfs"
)

const (
	scanBufLen  = 256 << 10
	keepScanBuf = 4 * scanBufLen // one large record doesn't pin its size
)

var scanBufs = sync.Pool{New: func() any { b := make([]byte, scanBufLen); return &b }}

// scanner reads a segment's records one after another, checking everything.
type scanner struct {
	f    vfs.File
	size int64
	seed uint32

	pos  int64  // of the next record
	next uint64 // offset that it must begin at

	buf    []byte // file bytes from bufPos
	bufPos int64
	pooled *[]byte
}

func newScanner(f vfs.File, size int64, seed uint32, pos int64, next uint64) *scanner {
	p := scanBufs.Get().(*[]byte) //nolint:errcheck // the pool holds nothing else
	return &scanner{f: f, size: size, seed: seed, pos: pos, next: next, pooled: p}
}

func (s *scanner) close() {
	if cap(*s.pooled) <= keepScanBuf {
		scanBufs.Put(s.pooled)
	}
}

// errEnd says that nothing but zeros, or nothing at all, follows: the clean end.
var errEnd = errors.New("end of records")

// damage is why the record at a scanner's position can't be read. Other errors of
// a scanner are the file system's.
type damage struct{ err error }

func (d *damage) Error() string { return d.err.Error() }
func (d *damage) Unwrap() error { return d.err }

// record returns the next record and moves on; body is valid until the next call.
func (s *scanner) record() (h recordHeader, body []byte, err error) {
	b, err := s.peek(recordHeaderLen)
	if err != nil {
		return h, nil, err
	}
	if isZero(b) {
		// It is the end if nothing else follows; who needs to know looks (tailIsZero).
		return h, nil, errEnd
	}
	if len(b) >= recordHeaderLen && b[17]&flagProducer != 0 {
		if b, err = s.peek(maxHeaderLen); err != nil {
			return h, nil, err
		}
	}
	h, err = parseRecordHeader(b, s.seed)
	if err != nil {
		return h, nil, &damage{err}
	}
	if h.base != s.next {
		return h, nil, &damage{errNoContinue}
	}
	if s.pos+int64(h.size()) > s.size {
		return h, nil, &damage{errShort}
	}
	b, err = s.peek(h.size())
	if err != nil {
		return h, nil, err
	}
	if len(b) < h.size() {
		return h, nil, &damage{errShort}
	}
	body = b[h.headerLen():h.size()]
	if crc32.Checksum(body, castagnoli) != h.bodyCRC {
		return h, nil, &damage{errBodyCRC}
	}
	s.pos += int64(h.size())
	s.next = h.next()
	return h, body, nil
}

// peek returns up to n bytes at the scanner's position, fewer only at the end of
// the file.
func (s *scanner) peek(n int) ([]byte, error) {
	if off := s.pos - s.bufPos; off >= 0 && off+int64(n) <= int64(len(s.buf)) {
		return s.buf[off : off+int64(n)], nil
	}
	want := int64(max(n, scanBufLen))
	want = max(min(want, s.size-s.pos), 0)
	if int64(cap(*s.pooled)) < want {
		*s.pooled = make([]byte, want)
	}
	b := (*s.pooled)[:want]
	got, err := s.f.ReadAt(b, s.pos)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	s.buf, s.bufPos = b[:got], s.pos
	return s.buf[:min(n, got)], nil
}

// asScanEnd turns the ways in which a scan comes to its end into nil and leaves
// the file system's errors.
func asScanEnd(err error) error {
	var d *damage
	if errors.Is(err, errEnd) || errors.As(err, &d) {
		return nil
	}
	return err
}
