package wal

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"time"
)

// kind says what a record is. Zero is no kind.
type kind uint8

const (
	kindDeclare      kind = 1 // an id is a key's from here on, in this file
	kindJournal      kind = 2 // bytes of a journal
	kindRelease      kind = 3 // everything of a journal so far that is below an offset is not needed
	kindForget       kind = 4 // likewise everything of the key, which ends
	kindEntry        kind = 5 // an entry; one with an index that is held replaces it and those after it
	kindTruncateFrom kind = 6 // entries from an index on are removed
	kindTruncateTo   kind = 7 // entries below an index are removed
	kindDiscard      kind = 8 // everything of a journal so far is not needed, whatever its offsets
)

// What a key names.
const (
	spaceJournal uint8 = 1
	spaceEntries uint8 = 2
)

// A record, big-endian. It begins with
//
//	0  u8   kind
//	1  u8   type: of a declaration the space, of an entry its type; otherwise zero
//	2  u16  zero
//	4  u32  id
//
// and goes on, by kind:
//
//	declare                     u16 length, key
//	journal                     u64 from, u64 next, u32 length, bytes
//	release, truncate from, to  u64
//	forget, discard             nothing
//	entry                       u64 index, u64 term, i64 time in nanoseconds or 0, u32 length of ext,
//	                            u32 length of data, u32 CRC-32C of the record without this field, ext, data
const (
	prefixLen        = 8
	declareHeaderLen = prefixLen + 2
	journalHeaderLen = prefixLen + 20
	boundRecordLen   = prefixLen + 8
	entryHeaderLen   = prefixLen + 36
	entryCRCAt       = prefixLen + 32
)

// record is a decoded record; its slices point into the batch.
type record struct {
	kind kind
	typ  uint8
	id   uint32
	a, b uint64 // from and next; index and term; a bound
	time int64
	data []byte // also the key
	ext  []byte
	pos  int64 // in the file
	size int
}

var (
	errShortRecord = errors.New("a record is cut off")
	errBadRecord   = errors.New("a record holds impossible values")
	errEntryCRC    = errors.New("an entry's checksum does not match")
)

// parseRecord decodes the record that b starts with.
func parseRecord(b []byte, r *record) error {
	if len(b) < prefixLen {
		return errShortRecord
	}
	*r = record{kind: kind(b[0]), typ: b[1], id: binary.BigEndian.Uint32(b[4:])}
	if b[2]|b[3] != 0 {
		return errBadRecord
	}
	switch r.kind {
	case kindForget, kindDiscard:
		r.size = prefixLen
		return nil
	case kindRelease, kindTruncateFrom, kindTruncateTo:
		if len(b) < boundRecordLen {
			return errShortRecord
		}
		r.a, r.size = binary.BigEndian.Uint64(b[prefixLen:]), boundRecordLen
		return nil
	case kindDeclare:
		return parseDeclare(b, r)
	case kindJournal:
		return parseJournal(b, r)
	case kindEntry:
		return parseEntry(b, r)
	}
	return errBadRecord
}

func parseDeclare(b []byte, r *record) error {
	if len(b) < declareHeaderLen {
		return errShortRecord
	}
	n := int(binary.BigEndian.Uint16(b[prefixLen:]))
	if n == 0 || n > maxKeyBytes || r.typ != spaceJournal && r.typ != spaceEntries {
		return errBadRecord
	}
	r.size = declareHeaderLen + n
	if len(b) < r.size {
		return errShortRecord
	}
	r.data = b[declareHeaderLen:r.size]
	return nil
}

func parseJournal(b []byte, r *record) error {
	if len(b) < journalHeaderLen {
		return errShortRecord
	}
	r.a, r.b = binary.BigEndian.Uint64(b[prefixLen:]), binary.BigEndian.Uint64(b[prefixLen+8:])
	n := binary.BigEndian.Uint32(b[prefixLen+16:])
	if n > maxItemBytes || r.b <= r.a {
		return errBadRecord
	}
	r.size = journalHeaderLen + int(n)
	if len(b) < r.size {
		return errShortRecord
	}
	r.data = b[journalHeaderLen:r.size]
	return nil
}

func parseEntry(b []byte, r *record) error {
	if len(b) < entryHeaderLen {
		return errShortRecord
	}
	r.a, r.b = binary.BigEndian.Uint64(b[prefixLen:]), binary.BigEndian.Uint64(b[prefixLen+8:])
	r.time = int64(binary.BigEndian.Uint64(b[prefixLen+16:]))
	ext, data := binary.BigEndian.Uint32(b[prefixLen+24:]), binary.BigEndian.Uint32(b[prefixLen+28:])
	if r.a == 0 || uint64(ext)+uint64(data) > maxItemBytes {
		return errBadRecord
	}
	r.size = entryHeaderLen + int(ext) + int(data)
	if len(b) < r.size {
		return errShortRecord
	}
	if entryCRC(b[:r.size]) != binary.BigEndian.Uint32(b[entryCRCAt:]) {
		return errEntryCRC
	}
	at := entryHeaderLen + int(ext)
	if ext > 0 {
		r.ext = b[entryHeaderLen:at:at]
	}
	if data > 0 {
		r.data = b[at:r.size:r.size]
	}
	return nil
}

func entryCRC(b []byte) uint32 {
	return crc32.Update(crc32.Checksum(b[:entryCRCAt], castagnoli), castagnoli, b[entryHeaderLen:])
}

func appendPrefix(dst []byte, k kind, typ uint8, id uint32) []byte {
	dst = append(dst, byte(k), typ, 0, 0)
	return binary.BigEndian.AppendUint32(dst, id)
}

func appendDeclare(dst []byte, space uint8, id uint32, key string) []byte {
	dst = appendPrefix(dst, kindDeclare, space, id)
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(key)))
	return append(dst, key...)
}

func appendBound(dst []byte, k kind, id uint32, bound uint64) []byte {
	return binary.BigEndian.AppendUint64(appendPrefix(dst, k, 0, id), bound)
}

func appendJournal(dst []byte, id uint32, from, next uint64, data []byte) []byte {
	dst = appendPrefix(dst, kindJournal, 0, id)
	dst = binary.BigEndian.AppendUint64(dst, from)
	dst = binary.BigEndian.AppendUint64(dst, next)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(data)))
	return append(dst, data...)
}

func entrySize(e *Entry) int { return entryHeaderLen + len(e.Ext) + len(e.Data) }

func appendEntry(dst []byte, id uint32, e *Entry) []byte {
	at := len(dst)
	dst = appendPrefix(dst, kindEntry, e.Type, id)
	dst = binary.BigEndian.AppendUint64(dst, e.Index)
	dst = binary.BigEndian.AppendUint64(dst, e.Term)
	nanos := int64(0)
	if !e.AppendedAt.IsZero() {
		nanos = e.AppendedAt.UnixNano()
	}
	dst = binary.BigEndian.AppendUint64(dst, uint64(nanos))
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(e.Ext)))
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(e.Data)))
	dst = append(dst, 0, 0, 0, 0)
	dst = append(dst, e.Ext...)
	dst = append(dst, e.Data...)
	binary.BigEndian.PutUint32(dst[at+entryCRCAt:], entryCRC(dst[at:]))
	return dst
}

// entry is the entry that an entry record holds; its bytes are the record's.
func (r *record) entry() Entry {
	e := Entry{Index: r.a, Term: r.b, Type: r.typ, Data: r.data, Ext: r.ext}
	if r.time != 0 {
		e.AppendedAt = time.Unix(0, r.time).UTC()
	}
	return e
}
