package seglog

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"sync"

	"felix.dev/felix/broker/vfs"
)

const scanBufLen = 256 << 10

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
	p := scanBufs.Get().(*[]byte) //nolint:errcheck,forcetypeassert // the pool holds nothing else
	return &scanner{f: f, size: size, seed: seed, pos: pos, next: next, pooled: p}
}

func (s *scanner) close() { scanBufs.Put(s.pooled) }

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

// lastNonZero returns the position after the last byte at or after from that isn't
// zero, or from if there is none.
func lastNonZero(f vfs.File, from, size int64) (int64, error) {
	p := scanBufs.Get().(*[]byte) //nolint:errcheck,forcetypeassert // the pool holds nothing else
	defer scanBufs.Put(p)
	last := from
	for pos := from; pos < size; {
		b := (*p)[:min(int64(scanBufLen), size-pos)]
		n, err := f.ReadAt(b, pos)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if n == 0 {
			break
		}
		if b = b[:n]; !isZero(b) {
			i := n - 1
			for b[i] == 0 {
				i--
			}
			last = pos + int64(i) + 1
		}
		pos += int64(n)
	}
	return last, nil
}

// evidence is what a search behind a damaged position found.
type evidence struct {
	found  bool
	stable uint64 // largest stable of a header found
	next   uint64 // largest offset after a record found
}

// searchBeyond looks for record headers after a position where no record could be
// read. A header carries its own checksum, seeded for this segment, so that one
// found anywhere was written by this log: what it says about durability holds,
// whatever happened to its body. Every byte position is tried, because the length
// that would lead from record to record is what may be damaged.
func searchBeyond(f vfs.File, from, size int64, seed uint32, next uint64) (evidence, error) {
	var ev evidence
	p := scanBufs.Get().(*[]byte) //nolint:errcheck,forcetypeassert // the pool holds nothing else
	defer scanBufs.Put(p)
	for pos := from; pos < size; {
		b := (*p)[:min(int64(scanBufLen), size-pos)]
		n, err := f.ReadAt(b, pos)
		if err != nil && !errors.Is(err, io.EOF) {
			return ev, err
		}
		b = b[:n]
		for i := 0; i+recordHeaderLen <= n; {
			if b[i+16] == 0 { // no kind: the cheap way over zeros
				i++
				continue
			}
			h, ok := headerAt(b[i:], seed, next)
			if !ok {
				i++
				continue
			}
			ev.found = true
			ev.stable = max(ev.stable, h.stable)
			ev.next = max(ev.next, h.next())
			i += h.headerLen()
		}
		if pos+int64(n) >= size || n < maxHeaderLen {
			break
		}
		pos += int64(n) - maxHeaderLen + 1
	}
	return ev, nil
}

// headerAt is the quick test of searchBeyond: most positions fail before any
// checksum is computed.
func headerAt(b []byte, seed uint32, next uint64) (recordHeader, bool) {
	if kind := Kind(b[16]); kind > KindGenerationStart || b[17]&^flagProducer != 0 || b[18]|b[19] != 0 {
		return recordHeader{}, false
	}
	if binary.BigEndian.Uint64(b[20:]) < next {
		return recordHeader{}, false
	}
	h, err := parseRecordHeader(b, seed)
	return h, err == nil
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
