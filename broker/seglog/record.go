package seglog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"

	"felix.dev/felix/broker/wire"
)

// Kind says what a record is. Zero is no kind, so that zeros are never a record.
type Kind uint8

const (
	// KindEvents is a batch: Frame is a whole wire frame in the offset shape.
	KindEvents Kind = 1
	// KindGenerationStart opens a generation. It takes one offset, is never part of
	// a Page, and its body is the owner's business.
	KindGenerationStart Kind = 2
)

// Record is one append: a batch of events, or a hidden record.
type Record struct {
	Kind        Kind
	Base        uint64 // offset of its first event
	Count       uint32 // offsets that it takes, at least 1
	TimeMicros  int64  // when it was appended, microseconds since the Unix epoch
	HasProducer bool
	Producer    uint64
	Sequence    uint64
	Frame       []byte
}

// The header of a record in a segment, big-endian. docs/format/seglog.md has the
// same table; changing one is changing both, and the version.
//
//	 0  u32  CRC-32C of bytes 4 to the end of the header, seeded (see seedOf)
//	 4  u32  CRC-32C of the body
//	 8  u32  length of the body
//	12  u32  count
//	16  u8   kind
//	17  u8   flags (1: a producer follows)
//	18  u16  zero
//	20  u64  base offset
//	28  i64  time, microseconds
//	36  u64  stable: first offset not known durable when this was written
//	44  u64  producer id   } only with flag 1
//	52  u64  sequence      }
const (
	recordHeaderLen = 44
	producerLen     = 16
	maxHeaderLen    = recordHeaderLen + producerLen
	maxBodyLen      = wire.HeaderLen + wire.MaxPayload

	flagProducer = 1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// seedOf ties a record's checksum to its segment. Bytes that were copied out of
// another log, or another segment, and published are then never taken for
// records when a damaged tail is searched.
func seedOf(incarnation [16]byte, segment uint64) uint32 {
	var b [24]byte
	copy(b[:], incarnation[:])
	binary.BigEndian.PutUint64(b[16:], segment)
	return crc32.Checksum(b[:], castagnoli)
}

// recordHeader is a decoded header whose checksum was right.
type recordHeader struct {
	kind        Kind
	hasProducer bool
	count       uint32
	bodyLen     int
	bodyCRC     uint32
	base        uint64
	time        int64
	stable      uint64
	producer    uint64
	sequence    uint64
}

func (h *recordHeader) headerLen() int {
	if h.hasProducer {
		return recordHeaderLen + producerLen
	}
	return recordHeaderLen
}

func (h *recordHeader) size() int    { return h.headerLen() + h.bodyLen }
func (h *recordHeader) next() uint64 { return h.base + uint64(h.count) }

func (h *recordHeader) record(body []byte) Record {
	return Record{
		Kind: h.kind, Base: h.base, Count: h.count, TimeMicros: h.time,
		HasProducer: h.hasProducer, Producer: h.producer, Sequence: h.sequence, Frame: body,
	}
}

var (
	errShort      = errors.New("the file ends inside a record")
	errHeaderCRC  = errors.New("record header checksum does not match")
	errBodyCRC    = errors.New("record body checksum does not match")
	errBadHeader  = errors.New("record header holds impossible values")
	errNotRecord  = errors.New("no record begins here")
	errNoContinue = errors.New("record does not continue the offsets")
)

// parseRecordHeader decodes the header that b starts with. errShort means that b
// is too short to tell, errNotRecord that the bytes can't be a header at all.
func parseRecordHeader(b []byte, seed uint32) (recordHeader, error) {
	if len(b) < recordHeaderLen {
		return recordHeader{}, errShort
	}
	kind, flags := Kind(b[16]), b[17]
	if kind == 0 || flags&^flagProducer != 0 || b[18]|b[19] != 0 {
		return recordHeader{}, errNotRecord
	}
	h := recordHeader{
		kind:        kind,
		hasProducer: flags&flagProducer != 0,
		bodyCRC:     binary.BigEndian.Uint32(b[4:]),
		count:       binary.BigEndian.Uint32(b[12:]),
		base:        binary.BigEndian.Uint64(b[20:]),
		time:        int64(binary.BigEndian.Uint64(b[28:])),
		stable:      binary.BigEndian.Uint64(b[36:]),
	}
	n := h.headerLen()
	if len(b) < n {
		return recordHeader{}, errShort
	}
	if crc32.Update(seed, castagnoli, b[4:n]) != binary.BigEndian.Uint32(b) {
		return recordHeader{}, errHeaderCRC
	}
	bodyLen := binary.BigEndian.Uint32(b[8:])
	if bodyLen > maxBodyLen || h.count == 0 || h.base > math.MaxUint64-uint64(h.count) || h.stable > h.base {
		return recordHeader{}, errBadHeader
	}
	if kind != KindEvents && (kind != KindGenerationStart || h.count != 1) {
		return recordHeader{}, errBadHeader
	}
	h.bodyLen = int(bodyLen)
	if h.hasProducer {
		h.producer = binary.BigEndian.Uint64(b[44:])
		h.sequence = binary.BigEndian.Uint64(b[52:])
	}
	return h, nil
}

// appendRecord appends the record as it is on disk. The header is made in place: a
// local array would be moved to the heap for the checksum, once a record.
func appendRecord(dst []byte, r *Record, seed uint32, stable uint64) []byte {
	at := len(dst)
	dst = append(dst, make([]byte, recordHeaderLen)...)
	if r.HasProducer {
		dst = append(dst, make([]byte, producerLen)...)
	}
	h := dst[at:]
	binary.BigEndian.PutUint32(h[4:], crc32.Checksum(r.Frame, castagnoli))
	binary.BigEndian.PutUint32(h[8:], uint32(len(r.Frame)))
	binary.BigEndian.PutUint32(h[12:], r.Count)
	h[16] = byte(r.Kind)
	binary.BigEndian.PutUint64(h[20:], r.Base)
	binary.BigEndian.PutUint64(h[28:], uint64(r.TimeMicros))
	binary.BigEndian.PutUint64(h[36:], stable)
	if r.HasProducer {
		h[17] = flagProducer
		binary.BigEndian.PutUint64(h[44:], r.Producer)
		binary.BigEndian.PutUint64(h[52:], r.Sequence)
	}
	binary.BigEndian.PutUint32(h, crc32.Update(seed, castagnoli, h[4:]))
	return append(dst, r.Frame...)
}

// checkRecord refuses what could not be read back: a caller's mistake.
func checkRecord(r *Record, want uint64) error {
	if r.Base != want {
		return fmt.Errorf("seglog: append: record begins at offset %d, the log ends at %d", r.Base, want)
	}
	if len(r.Frame) > maxBodyLen {
		return fmt.Errorf("seglog: append: body of %d bytes is over the limit of %d", len(r.Frame), maxBodyLen)
	}
	switch r.Kind {
	case KindGenerationStart:
		if r.Count != 1 {
			return fmt.Errorf("seglog: append: a generation start takes one offset, not %d", r.Count)
		}
	case KindEvents:
		info, err := wire.PeekOffsetFrame(r.Frame)
		if err != nil {
			return fmt.Errorf("seglog: append: body is not an offset frame: %w", err)
		}
		if info.Base != r.Base || info.Count != r.Count || info.Size != len(r.Frame) {
			return fmt.Errorf("seglog: append: frame says base %d, count %d, size %d; record says %d, %d, %d",
				info.Base, info.Count, info.Size, r.Base, r.Count, len(r.Frame))
		}
	default:
		return fmt.Errorf("seglog: append: unknown kind %d", r.Kind)
	}
	if r.Base > math.MaxUint64-uint64(r.Count) {
		return fmt.Errorf("seglog: append: offsets run past 64 bits at %d", r.Base)
	}
	return nil
}
