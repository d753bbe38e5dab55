package seglog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"felix.dev/felix/broker/vfs"
)

// A segment's header, big-endian; records follow at once.
//
//	 0  8 bytes  "FELIXSEG"
//	 8  u16      version
//	10  u16      zero
//	12  u32      length of this header
//	16  u64      base offset
//	24  16 bytes incarnation
//	40  i64      created, microseconds since the Unix epoch
//	48  12 bytes zero
//	60  u32      CRC-32C of bytes 0 to 60
const (
	segmentHeaderLen = 64
	formatVersion    = 1
	segmentMagic     = "FELIXSEG"
)

type segmentHeader struct {
	base        uint64
	incarnation [16]byte
	created     int64
}

func encodeSegmentHeader(h segmentHeader) []byte {
	b := make([]byte, segmentHeaderLen)
	copy(b, segmentMagic)
	binary.BigEndian.PutUint16(b[8:], formatVersion)
	binary.BigEndian.PutUint32(b[12:], segmentHeaderLen)
	binary.BigEndian.PutUint64(b[16:], h.base)
	copy(b[24:], h.incarnation[:])
	binary.BigEndian.PutUint64(b[40:], uint64(h.created))
	binary.BigEndian.PutUint32(b[60:], crc32.Checksum(b[:60], castagnoli))
	return b
}

// parseSegmentHeader returns ErrFormat for a header that is whole but not ours to
// read, and errBadHeader for one that is damaged.
func parseSegmentHeader(b []byte) (segmentHeader, error) {
	if len(b) < segmentHeaderLen {
		return segmentHeader{}, errShort
	}
	b = b[:segmentHeaderLen]
	if string(b[:8]) != segmentMagic {
		return segmentHeader{}, errNotRecord
	}
	if crc32.Checksum(b[:60], castagnoli) != binary.BigEndian.Uint32(b[60:]) {
		return segmentHeader{}, errHeaderCRC
	}
	if v := binary.BigEndian.Uint16(b[8:]); v != formatVersion {
		return segmentHeader{}, fmt.Errorf("%w: version %d, this program reads version %d", ErrFormat, v, formatVersion)
	}
	if binary.BigEndian.Uint32(b[12:]) != segmentHeaderLen {
		return segmentHeader{}, errBadHeader
	}
	h := segmentHeader{
		base:    binary.BigEndian.Uint64(b[16:]),
		created: int64(binary.BigEndian.Uint64(b[40:])),
	}
	copy(h.incarnation[:], b[24:40])
	return h, nil
}

// readSegmentHeader reads and checks a header. A segment gets its name only when
// its header is flushed, so that one that is missing is damage, even if nothing
// else is in the file.
func readSegmentHeader(f vfs.File, base uint64) (segmentHeader, error) {
	var b [segmentHeaderLen]byte
	n, err := f.ReadAt(b[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return segmentHeader{}, fmt.Errorf("seglog: read %s: %w", f.Name(), err)
	}
	h, err := parseSegmentHeader(b[:n])
	switch {
	case errors.Is(err, ErrFormat):
		return h, fmt.Errorf("%s: %w", f.Name(), err)
	case err != nil:
		return h, &CorruptionError{Segment: base, Offset: base, Reason: err.Error()}
	case h.base != base:
		return h, &CorruptionError{Segment: base, Offset: base, Reason: fmt.Sprintf("its header says that it begins at offset %d", h.base)}
	}
	return h, nil
}
