package seglog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"felix.dev/felix/broker/vfs"
)

// tail is what lies behind the last whole record of the last segment: nothing, or
// one of the two.
type tail struct {
	cut  *Cut             // a torn tail
	bad  *CorruptionError // records that had been durable
	next uint64           // with bad: the end of what is known to have been written
}

// judgeTail looks behind the position at which a scan of the last segment came to
// its end because of scanErr. Offsets below floor are known to have been durable.
func judgeTail(sc *scanner, scanErr error, segment, floor uint64) (tail, error) {
	lastByte, err := lastNonZero(sc.f, sc.pos, sc.size)
	if err != nil {
		return tail{}, err
	}
	var ev evidence
	reason := "it ends here"
	if lastByte > sc.pos {
		if ev, err = searchBeyond(sc.f, sc.pos, lastByte, sc.seed, sc.next); err != nil {
			return tail{}, err
		}
		reason = "zeros where a record should be"
		if !errors.Is(scanErr, errEnd) {
			reason = scanErr.Error()
		}
	}
	if acked := max(floor, ev.stable); acked > sc.next {
		return tail{next: max(acked, ev.next), bad: &CorruptionError{
			Segment: segment, Offset: sc.next, Pos: sc.pos,
			Reason: fmt.Sprintf("%s, but offsets below %d had been durable", reason, acked),
		}}, nil
	}
	if lastByte == sc.pos {
		return tail{}, nil
	}
	return tail{cut: &Cut{Segment: segment, Pos: sc.pos, Offset: sc.next, Bytes: lastByte - sc.pos, Reason: reason}}, nil
}

// lastNonZero returns the position after the last byte at or after from that isn't
// zero, or from if there is none.
func lastNonZero(f vfs.File, from, size int64) (int64, error) {
	p := scanBufs.Get().(*[]byte) //nolint:errcheck // the pool holds nothing else
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
	p := scanBufs.Get().(*[]byte) //nolint:errcheck // the pool holds nothing else
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
