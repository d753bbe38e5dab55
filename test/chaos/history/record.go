package history

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// ID is a record: a number of a source. A source publishes its numbers in order, from 1. The zero ID is none.
type ID struct {
	Source uint32
	Number uint64
}

// String names the record.
func (i ID) String() string { return fmt.Sprintf("record %d of source %d", i.Number, i.Source) }

// Head is the size of the smallest payload.
const Head = 12

// pattern fills what is behind the head; it is longer than any record by the offset that it is used from.
var pattern = func() []byte {
	b := make([]byte, 1<<20+256)
	for i := range b {
		b[i] = byte(i) ^ byte(i>>8)
	}
	return b
}()

// Payload is the record as it is published, of at least Head and at most 1 MiB bytes. No two records have the same.
func (i ID) Payload(size int) []byte {
	b := make([]byte, min(max(size, Head), len(pattern)-256))
	binary.BigEndian.PutUint32(b, i.Source)
	binary.BigEndian.PutUint64(b[4:], i.Number)
	copy(b[Head:], pattern[i.Number%256:])
	return b
}

// Parse reads a payload back, every byte of it.
func Parse(b []byte) (ID, error) {
	if len(b) < Head {
		return ID{}, fmt.Errorf("a record of %d bytes is none of ours", len(b))
	}
	i := ID{binary.BigEndian.Uint32(b), binary.BigEndian.Uint64(b[4:])}
	if rest := b[Head:]; i.Number == 0 || len(rest) > len(pattern)-256 || !bytes.Equal(rest, pattern[i.Number%256:][:len(rest)]) {
		return i, fmt.Errorf("%s is damaged", i)
	}
	return i, nil
}
