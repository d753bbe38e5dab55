package wire

import (
	"encoding/binary"
	"iter"
)

const (
	recordOverhead      = 4  // u32 length
	timedRecordOverhead = 12 // u64 time, u32 length
)

// Records is a region of Count records, each a u32 length and its payload. The
// bytes are the same in a publish and in an event frame without times.
//
// A Records made by ParseRecords, RecordsOf or a decoder is well formed: Count
// is what Bytes holds.
type Records struct {
	Count uint32
	Bytes []byte
}

// ParseRecords checks that b is exactly count records. It allocates nothing.
func ParseRecords(count uint32, b []byte) (Records, error) {
	if err := checkRecords(count, b, recordOverhead); err != nil {
		return Records{}, err
	}
	return Records{Count: count, Bytes: b}, nil
}

// checkRecords walks count records whose payload length is the last 4 of
// overhead bytes.
func checkRecords(count uint32, b []byte, overhead int) error {
	if uint64(count)*uint64(overhead) > uint64(len(b)) {
		return malformed("records", "count cannot fit the bytes left")
	}
	for range count {
		if len(b) < overhead {
			return malformed("records", "record cut short")
		}
		n := binary.BigEndian.Uint32(b[overhead-4:])
		b = b[overhead:]
		if uint64(n) > uint64(len(b)) {
			return malformed("records", "record length runs past the frame")
		}
		b = b[n:]
	}
	if len(b) != 0 {
		return malformed("records", "bytes left over after the last record")
	}
	return nil
}

// RecordsOf lays payloads out as a region.
func RecordsOf(payloads ...[]byte) Records {
	n := 0
	for _, p := range payloads {
		n += recordOverhead + len(p)
	}
	b := make([]byte, 0, n)
	for _, p := range payloads {
		b = AppendRecord(b, p)
	}
	return Records{Count: uint32(len(payloads)), Bytes: b}
}

// AppendRecord appends one record to a region.
func AppendRecord(dst, payload []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(payload)))
	return append(dst, payload...)
}

// All yields the index and payload of each record. Payloads are sub-slices.
func (r Records) All() iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		b := r.Bytes
		for i := range int(r.Count) {
			p, rest, ok := cutRecord(b, recordOverhead)
			if !ok || !yield(i, p) {
				return
			}
			b = rest
		}
	}
}

// PayloadBytes is the sum of the payload lengths.
func (r Records) PayloadBytes() int { return len(r.Bytes) - recordOverhead*int(r.Count) }

// CheckSizes returns a RecordTooLargeError for the first record above limit.
func (r Records) CheckSizes(limit int) error {
	if len(r.Bytes) <= limit {
		return nil
	}
	for i, p := range r.All() {
		if len(p) > limit {
			return &RecordTooLargeError{Index: i, Length: len(p), Limit: limit}
		}
	}
	return nil
}

// cutRecord splits the first record off; ok is false where none is whole.
func cutRecord(b []byte, overhead int) (payload, rest []byte, ok bool) {
	if len(b) < overhead {
		return nil, nil, false
	}
	n := uint64(binary.BigEndian.Uint32(b[overhead-4:])) + uint64(overhead)
	if n > uint64(len(b)) {
		return nil, nil, false
	}
	return b[overhead:n:n], b[n:], true
}
