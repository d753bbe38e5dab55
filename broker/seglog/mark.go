package seglog

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"path/filepath"

	"felix.dev/felix/broker/vfs"
)

// The mark says: every offset below next was durable when this was written, at
// Close. It is a floor, and a floor never becomes false: a log that is opened
// again only grows, so that a mark left over from an earlier close is merely low.
// A log that ends below its mark has lost what was acknowledged, which without
// the mark could pass for a torn tail.
//
//	 0  8 bytes  "FELIXEND"
//	 8  u16      version
//	10  6 bytes  zero
//	16  u64      next
//	24  16 bytes incarnation
//	40  u32      CRC-32C of everything before
const (
	markMagic = "FELIXEND"
	markLen   = 44
)

func appendMark(dst []byte, next uint64, incarnation [16]byte) []byte {
	start := len(dst)
	dst = append(dst, markMagic...)
	dst = binary.BigEndian.AppendUint16(dst, formatVersion)
	dst = append(dst, make([]byte, 6)...)
	dst = binary.BigEndian.AppendUint64(dst, next)
	dst = append(dst, incarnation[:]...)
	return binary.BigEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

var errBadMark = errors.New("mark is damaged")

func parseMark(b []byte) (next uint64, incarnation [16]byte, err error) {
	if len(b) != markLen || string(b[:8]) != markMagic || binary.BigEndian.Uint16(b[8:]) != formatVersion ||
		crc32.Checksum(b[:markLen-4], castagnoli) != binary.BigEndian.Uint32(b[markLen-4:]) {
		return 0, incarnation, errBadMark
	}
	return binary.BigEndian.Uint64(b[16:]), [16]byte(b[24:40]), nil
}

// readMark returns the floor, or 0 if there is none that can be trusted: it is
// an additional check, so that a damaged one doesn't stop the log.
func readMark(fsys vfs.FS, dir string, incarnation [16]byte) uint64 {
	b, err := vfs.ReadFile(fsys, filepath.Join(dir, markName))
	if err != nil {
		return 0
	}
	next, inc, err := parseMark(b)
	if err != nil || inc != incarnation {
		return 0
	}
	return next
}
