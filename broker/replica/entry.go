package replica

import (
	"encoding/binary"
	"errors"
	"fmt"

	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/wire"
)

// Entries, big-endian. docs/format/quorum.md has the same; changing one is changing
// both, and the version.
const (
	entryVersion = 1

	kindBatch     = 1
	kindOpen      = 2
	kindConfigure = 3
	kindSeal      = 4
	kindDrop      = 5
	kindTrim      = 6

	entryHeader = 2
	batchHeader = entryHeader + 8 + 4
	itemHeader  = 4 + 1 + 4 + 4
	itemID      = 16
	keyLen      = incarnationLen + 4
	trimItem    = 4 + 8

	flagProducer = 1
)

var errBadEntry = errors.New("replica: entry cannot be read")

// reader takes an encoding apart; short is set by the first read beyond its end.
type reader struct {
	b     []byte
	short bool
}

func (r *reader) bytes(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.short, r.b = true, nil
		return make([]byte, min(max(n, 0), itemID)) // of what fixed fields need; the caller looks at short
	}
	out := r.b[:n:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) u8() byte    { return r.bytes(1)[0] }
func (r *reader) u32() uint32 { return binary.BigEndian.Uint32(r.bytes(4)) }
func (r *reader) u64() uint64 { return binary.BigEndian.Uint64(r.bytes(8)) }

// block is bytes behind their length.
func (r *reader) block() []byte {
	n := r.u32()
	if r.short || uint64(n) > uint64(len(r.b)) {
		r.short = true
		return nil
	}
	return r.bytes(int(n))
}

func (r *reader) key() ShardKey {
	if len(r.b) < keyLen {
		r.short = true
		return ShardKey{}
	}
	return keyOf(r.bytes(incarnationLen), r.u32())
}

// end says what is wrong with what was read.
func (r *reader) end(what string) error {
	switch {
	case r.short:
		return fmt.Errorf("%w: %s is cut short", errBadEntry, what)
	case len(r.b) > 0:
		return fmt.Errorf("%w: %d bytes behind %s", errBadEntry, len(r.b), what)
	}
	return nil
}

func itemSize(p *stream.Publish) int {
	n := itemHeader + len(p.Records.Bytes)
	if p.HasProducer {
		n += itemID
	}
	return n
}

func appendBatchHeader(b []byte, at int64, items int) []byte {
	b = append(b, entryVersion, kindBatch)
	b = binary.BigEndian.AppendUint64(b, uint64(at))
	return binary.BigEndian.AppendUint32(b, uint32(items))
}

func appendItem(b []byte, slot uint32, p *stream.Publish) []byte {
	b = binary.BigEndian.AppendUint32(b, slot)
	if p.HasProducer {
		b = append(b, flagProducer)
	} else {
		b = append(b, 0)
	}
	b = binary.BigEndian.AppendUint32(b, p.Records.Count)
	b = binary.BigEndian.AppendUint32(b, uint32(len(p.Records.Bytes)))
	if p.HasProducer {
		b = binary.BigEndian.AppendUint64(b, p.Producer)
		b = binary.BigEndian.AppendUint64(b, p.Sequence)
	}
	return append(b, p.Records.Bytes...)
}

// readItem reads one batch; its bytes are the entry's.
func readItem(r *reader) (slot uint32, b stream.Batch, err error) {
	slot = r.u32()
	flags := r.u8()
	count, n := r.u32(), r.u32()
	if flags&flagProducer != 0 {
		b.HasProducer, b.Producer, b.Sequence = true, r.u64(), r.u64()
	}
	if r.short || flags&^flagProducer != 0 || uint64(n) > uint64(len(r.b)) {
		return 0, b, fmt.Errorf("%w: a batch is cut short", errBadEntry)
	}
	if b.Records, err = wire.ParseRecords(count, r.bytes(int(n))); err != nil || count == 0 {
		return 0, b, fmt.Errorf("%w: a batch of %d records: %w", errBadEntry, count, err)
	}
	return slot, b, nil
}

// change is an entry about one shard.
type change struct {
	kind byte
	Opening
}

func (c *change) encode() ([]byte, error) {
	inc, err := c.Key.incarnation()
	if err != nil {
		return nil, err
	}
	b := append([]byte{entryVersion, c.kind}, inc[:]...)
	b = binary.BigEndian.AppendUint32(b, c.Key.Shard)
	if c.kind == kindOpen {
		b = binary.BigEndian.AppendUint64(b, c.First)
	}
	if c.kind == kindOpen || c.kind == kindConfigure {
		b = binary.BigEndian.AppendUint32(b, uint32(len(c.Spec)))
		b = append(b, c.Spec...)
	}
	return b, nil
}

func readChange(kind byte, b []byte) (change, error) {
	r := reader{b: b}
	c := change{kind: kind}
	c.Key = r.key()
	if kind == kindOpen {
		c.First = r.u64()
	}
	if kind == kindOpen || kind == kindConfigure {
		c.Spec = append([]byte(nil), r.block()...)
	}
	return c, r.end("a change")
}

// trim says that a shard's records below oldest are not kept any more.
type trim struct {
	slot   uint32
	oldest uint64
}

func appendTrims(b []byte, trims []trim) []byte {
	b = append(b, entryVersion, kindTrim)
	b = binary.BigEndian.AppendUint32(b, uint32(len(trims)))
	for _, t := range trims {
		b = binary.BigEndian.AppendUint32(b, t.slot)
		b = binary.BigEndian.AppendUint64(b, t.oldest)
	}
	return b
}

func readTrims(b []byte) ([]trim, error) {
	r := reader{b: b}
	n := r.u32()
	if r.short || uint64(n)*trimItem != uint64(len(r.b)) {
		return nil, fmt.Errorf("%w: %d trims in %d bytes", errBadEntry, n, len(r.b))
	}
	out := make([]trim, n)
	for i := range out {
		out[i] = trim{r.u32(), r.u64()}
	}
	return out, nil
}
