package seglog

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"sort"
)

// index says where some of a segment's records begin. It is only ever a shortcut:
// a missing, damaged or stale one is rebuilt from the segment.
type index struct {
	entries []indexEntry // rising; the first record has none: it is at segmentHeaderLen
	end     int64        // position after the last record
	next    uint64       // offset after the last record
	newest  int64        // largest time of a record, microseconds; 0: no records
	records uint64
}

type indexEntry struct {
	offset uint64
	pos    int64
}

// lookup returns a position at or before the record that holds offset.
func (x *index) lookup(offset uint64) indexEntry {
	i := sort.Search(len(x.entries), func(i int) bool { return x.entries[i].offset > offset })
	if i == 0 {
		return indexEntry{pos: segmentHeaderLen}
	}
	return x.entries[i-1]
}

// wantsEntry says whether the record that begins at pos should have an entry.
func (x *index) wantsEntry(pos int64, every int) bool {
	last := int64(segmentHeaderLen)
	if n := len(x.entries); n > 0 {
		last = x.entries[n-1].pos
	}
	return pos-last >= int64(every)
}

// extend notes the end of one more record.
func (x *index) extend(next uint64, time, end int64) {
	x.end, x.next = end, next
	x.newest = max(x.newest, time)
	x.records++
}

// add notes a record that begins at pos and ends at end.
func (x *index) add(h *recordHeader, pos, end int64, every int) {
	if x.wantsEntry(pos, every) {
		x.entries = append(x.entries, indexEntry{offset: h.base, pos: pos})
	}
	x.extend(h.next(), h.time, end)
}

// An index file, big-endian.
//
//	 0  8 bytes  "FELIXIDX"
//	 8  u16      version
//	10  u16      zero
//	12  u32      number of entries
//	16  u64      base offset of the segment
//	24  16 bytes incarnation
//	40  u64      end: position after the segment's last record
//	48  u64      next: offset after it
//	56  i64      newest: largest time of its records, microseconds
//	64  u64      records
//	72  entries, each u64 offset, u64 position
//	    u32      CRC-32C of everything before
const (
	indexMagic     = "FELIXIDX"
	indexHeaderLen = 72
	indexEntryLen  = 16
)

func appendIndex(dst []byte, base uint64, incarnation [16]byte, x *index) []byte {
	start := len(dst)
	dst = append(dst, indexMagic...)
	dst = binary.BigEndian.AppendUint16(dst, formatVersion)
	dst = binary.BigEndian.AppendUint16(dst, 0)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(x.entries)))
	dst = binary.BigEndian.AppendUint64(dst, base)
	dst = append(dst, incarnation[:]...)
	dst = binary.BigEndian.AppendUint64(dst, uint64(x.end))
	dst = binary.BigEndian.AppendUint64(dst, x.next)
	dst = binary.BigEndian.AppendUint64(dst, uint64(x.newest))
	dst = binary.BigEndian.AppendUint64(dst, x.records)
	for _, e := range x.entries {
		dst = binary.BigEndian.AppendUint64(dst, e.offset)
		dst = binary.BigEndian.AppendUint64(dst, uint64(e.pos))
	}
	return binary.BigEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

var errBadIndex = errors.New("index is damaged or of another segment")

func parseIndex(b []byte, base uint64, incarnation [16]byte) (*index, error) {
	if len(b) < indexHeaderLen+4 || string(b[:8]) != indexMagic {
		return nil, errBadIndex
	}
	body, sum := b[:len(b)-4], binary.BigEndian.Uint32(b[len(b)-4:])
	n := binary.BigEndian.Uint32(b[12:])
	if binary.BigEndian.Uint16(b[8:]) != formatVersion || uint64(len(body)) != indexHeaderLen+uint64(n)*indexEntryLen ||
		crc32.Checksum(body, castagnoli) != sum ||
		binary.BigEndian.Uint64(b[16:]) != base || [16]byte(b[24:40]) != incarnation {
		return nil, errBadIndex
	}
	x := &index{
		end:     int64(binary.BigEndian.Uint64(b[40:])),
		next:    binary.BigEndian.Uint64(b[48:]),
		newest:  int64(binary.BigEndian.Uint64(b[56:])),
		records: binary.BigEndian.Uint64(b[64:]),
		entries: make([]indexEntry, n),
	}
	last := indexEntry{offset: base, pos: segmentHeaderLen}
	for i := range x.entries {
		at := indexHeaderLen + i*indexEntryLen
		e := indexEntry{offset: binary.BigEndian.Uint64(b[at:]), pos: int64(binary.BigEndian.Uint64(b[at+8:]))}
		if e.offset <= last.offset || e.pos <= last.pos {
			return nil, errBadIndex
		}
		x.entries[i], last = e, e
	}
	if x.end < last.pos || x.next < last.offset {
		return nil, errBadIndex
	}
	return x, nil
}
