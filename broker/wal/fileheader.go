package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"felix.dev/felix/broker/vfs"
)

// A file's header, big-endian; batches follow at once.
//
//	 0  8 bytes  "FELIXWAL"
//	 8  u16      version
//	10  u16      zero
//	12  u32      length of this header
//	16  u64      number, as in the name
//	24  16 bytes which log this is, the same in all its files
//	40  u64      number of the first batch
//	48  u64      random: what an earlier use of the file left in it is not taken for this one's
//	56  u32      zero
//	60  u32      CRC-32C of bytes 0 to 60
const (
	fileHeaderLen = 64
	formatVersion = 1
	fileMagic     = "FELIXWAL"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

type fileHeader struct {
	number uint64
	log    [16]byte
	first  uint64
	nonce  uint64
}

func encodeFileHeader(h *fileHeader) []byte {
	b := make([]byte, fileHeaderLen)
	copy(b, fileMagic)
	binary.BigEndian.PutUint16(b[8:], formatVersion)
	binary.BigEndian.PutUint32(b[12:], fileHeaderLen)
	binary.BigEndian.PutUint64(b[16:], h.number)
	copy(b[24:], h.log[:])
	binary.BigEndian.PutUint64(b[40:], h.first)
	binary.BigEndian.PutUint64(b[48:], h.nonce)
	binary.BigEndian.PutUint32(b[60:], crc32.Checksum(b[:60], castagnoli))
	return b
}

// seed ties the checksums of a file's batches to this use of the file.
func (h *fileHeader) seed() uint32 { return crc32.Checksum(encodeFileHeader(h)[16:56], castagnoli) }

var errBadFileHeader = errors.New("its header is damaged")

// parseFileHeader returns ErrFormat for a header that is whole but not ours to read.
func parseFileHeader(b []byte) (fileHeader, error) {
	var h fileHeader
	if len(b) < fileHeaderLen || string(b[:8]) != fileMagic ||
		crc32.Checksum(b[:60], castagnoli) != binary.BigEndian.Uint32(b[60:]) {
		return h, errBadFileHeader
	}
	if v := binary.BigEndian.Uint16(b[8:]); v != formatVersion {
		return h, fmt.Errorf("%w: version %d, this program reads version %d", ErrFormat, v, formatVersion)
	}
	if binary.BigEndian.Uint32(b[12:]) != fileHeaderLen {
		return h, errBadFileHeader
	}
	h.number = binary.BigEndian.Uint64(b[16:])
	h.log = [16]byte(b[24:40])
	h.first = binary.BigEndian.Uint64(b[40:])
	h.nonce = binary.BigEndian.Uint64(b[48:])
	return h, nil
}

// readFileHeader reads and checks a header. A file gets its name only when its header
// is flushed, so that one that is missing is damage.
func readFileHeader(f vfs.File, number uint64) (fileHeader, error) {
	var b [fileHeaderLen]byte
	n, err := f.ReadAt(b[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return fileHeader{}, fmt.Errorf("wal: read %s: %w", f.Name(), err)
	}
	h, err := parseFileHeader(b[:n])
	switch {
	case errors.Is(err, ErrFormat):
		return h, fmt.Errorf("%s: %w", f.Name(), err)
	case err != nil:
		return h, &CorruptionError{File: f.Name(), Reason: err.Error()}
	case h.number != number:
		return h, &CorruptionError{File: f.Name(), Reason: fmt.Sprintf("its header says that it is file %d", h.number)}
	}
	return h, nil
}
