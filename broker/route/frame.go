package route

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"felix.dev/felix/broker/wire"
)

// The frames of a forwarding connection, docs/format/forward.md. Publishes and pings go
// to the owner; the answers are ack frames of the wire protocol, and empty message frames
// for pings.
const (
	kindPublish = 1
	kindPing    = 2

	flagIdempotent = 1

	// headLen is the fixed part of a frame: all of a ping. The incarnation and the
	// records of a publish follow.
	headLen        = 44
	maxIncarnation = 255
)

var errFrame = errors.New("route: malformed frame of a forwarding connection")

// head is the fixed part of a frame.
type head struct {
	kind        byte
	idempotent  bool
	incarnation int          // bytes
	records     wire.Records // Count; of Bytes only the length is known
	length      int          // bytes of records
	round       uint32
	id          uint64
	producer    uint64
	sequence    uint64
	shard       uint32
}

// appendPublish appends all of a frame but the records.
func appendPublish(dst []byte, e *entry, round uint32) []byte {
	pub, inc := e.pub, e.place.key.Incarnation
	flags := byte(0)
	if pub.HasProducer {
		flags = flagIdempotent
	}
	dst = append(dst, kindPublish, flags, byte(len(inc)), 0)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(pub.Records.Bytes)))
	dst = binary.BigEndian.AppendUint32(dst, pub.Records.Count)
	dst = binary.BigEndian.AppendUint32(dst, round)
	dst = binary.BigEndian.AppendUint64(dst, e.id)
	dst = binary.BigEndian.AppendUint64(dst, pub.Producer)
	dst = binary.BigEndian.AppendUint64(dst, pub.Sequence)
	dst = binary.BigEndian.AppendUint32(dst, e.place.key.Shard)
	return append(dst, inc...)
}

func appendPing(dst []byte) []byte {
	return append(append(dst, kindPing), make([]byte, headLen-1)...)
}

// readHead reads the fixed part of a frame. io.EOF is the end between two frames.
func readHead(r io.Reader, b *[headLen]byte) (head, error) {
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return head{}, err
	}
	h := head{
		kind: b[0], idempotent: b[1] == flagIdempotent, incarnation: int(b[2]),
		length:  int(binary.BigEndian.Uint32(b[4:])),
		records: wire.Records{Count: binary.BigEndian.Uint32(b[8:])},
		round:   binary.BigEndian.Uint32(b[12:]), id: binary.BigEndian.Uint64(b[16:]),
		producer: binary.BigEndian.Uint64(b[24:]), sequence: binary.BigEndian.Uint64(b[32:]),
		shard: binary.BigEndian.Uint32(b[40:]),
	}
	switch {
	case h.kind != kindPublish && h.kind != kindPing:
		return h, fmt.Errorf("%w: kind %d", errFrame, h.kind)
	case b[1] > flagIdempotent || b[3] != 0:
		return h, fmt.Errorf("%w: unknown flags", errFrame)
	case h.length > wire.MaxRecordsBytes:
		return h, fmt.Errorf("%w: %d bytes of records", errFrame, h.length)
	case h.kind == kindPing && h.incarnation+h.length != 0:
		return h, fmt.Errorf("%w: a ping with something in it", errFrame)
	}
	return h, nil
}
