package wal

import (
	"encoding/binary"
	"hash/crc32"
)

// A batch is what one commit writes: a header, records, and the checksum of the
// records. Big-endian.
//
//	 0  u32  CRC-32C of bytes 4 to 24, begun with the file's seed
//	 4  4 bytes "FWB1"
//	 8  u64  number: one more than that of the batch before
//	16  u32  length of the records
//	20  u32  how many there are
//	24  records
//	    u32  CRC-32C of the records, begun with the header's
const (
	batchHeaderLen  = 24
	batchTrailerLen = 4
	batchMagic      = "FWB1"
)

type batchHeader struct {
	crc     uint32
	number  uint64
	length  int
	records uint32
}

func (h *batchHeader) size() int { return batchHeaderLen + h.length + batchTrailerLen }

// sealBatch fills in the header of b, which has room for it and then the records, and
// appends the trailer.
func sealBatch(b []byte, seed uint32, number uint64, records uint32) []byte {
	copy(b[4:], batchMagic)
	binary.BigEndian.PutUint64(b[8:], number)
	binary.BigEndian.PutUint32(b[16:], uint32(len(b)-batchHeaderLen))
	binary.BigEndian.PutUint32(b[20:], records)
	crc := crc32.Update(seed, castagnoli, b[4:batchHeaderLen])
	binary.BigEndian.PutUint32(b, crc)
	return binary.BigEndian.AppendUint32(b, crc32.Update(crc, castagnoli, b[batchHeaderLen:]))
}

// parseBatchHeader decodes the header that b starts with; ok is false if none does.
func parseBatchHeader(b []byte, seed uint32) (h batchHeader, ok bool) {
	if len(b) < batchHeaderLen || string(b[4:8]) != batchMagic {
		return h, false
	}
	h.crc = binary.BigEndian.Uint32(b)
	if crc32.Update(seed, castagnoli, b[4:batchHeaderLen]) != h.crc {
		return h, false
	}
	h.number = binary.BigEndian.Uint64(b[8:])
	length := binary.BigEndian.Uint32(b[16:])
	h.records = binary.BigEndian.Uint32(b[20:])
	if length > maxBatchLen {
		return h, false
	}
	h.length = int(length)
	return h, true
}

// maxBatchLen is more than any batch has: the bound on what waits, one item above it,
// and what declares the keys.
const maxBatchLen = maxBatchBytes + 2*maxItemBytes

// bodyOK checks the records against the trailer behind them.
func (h *batchHeader) bodyOK(body, trailer []byte) bool {
	return crc32.Update(h.crc, castagnoli, body) == binary.BigEndian.Uint32(trailer)
}
