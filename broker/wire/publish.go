package wire

import (
	"encoding/binary"
	"fmt"
	"math"
)

// AckMode says how a publish wants to be answered. Whatever the mode, an acked
// publish gets exactly one answer.
type AckMode uint8

// Ack modes. AckNone exists in JSON only.
const (
	AckNone       AckMode = 0
	AckPerMessage AckMode = 1
	AckPerBatch   AckMode = 2
)

func (m AckMode) String() string {
	switch m {
	case AckNone:
		return "none"
	case AckPerMessage:
		return "per_message"
	case AckPerBatch:
		return "per_batch"
	}
	return fmt.Sprintf("ack_mode_%d", uint8(m))
}

// MarshalText is the JSON form.
func (m AckMode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads the JSON form.
func (m *AckMode) UnmarshalText(b []byte) error {
	switch string(b) {
	case "none":
		*m = AckNone
	case "per_message":
		*m = AckPerMessage
	case "per_batch":
		*m = AckPerBatch
	default:
		return fmt.Errorf("%w: unknown ack mode %q", ErrMalformed, b)
	}
	return nil
}

// Publish is a binary publish batch. All byte slices are sub-slices of the
// frame's payload. Records may be empty: an acked publish of nothing still gets
// its answer.
type Publish struct {
	Acked     bool
	RequestID uint64
	AckMode   AckMode

	Idempotent           bool // needs Acked
	ProducerID, Sequence uint64

	Keyed bool // an empty key is a key
	Key   []byte

	Tenant, Namespace, Stream []byte
	Records                   Records
}

// DecodePublish reads the payload of a publish frame. It does not allocate. On
// an error behind the request id, Acked and RequestID are filled all the same,
// so that a failed ack can be sent.
func DecodePublish(f Flags, payload []byte) (Publish, error) {
	kind, err := f.Kind()
	if err != nil {
		return Publish{}, err
	}
	if kind != KindPublish {
		return Publish{}, flagsErr(f, "not a publish frame")
	}
	var p Publish
	c := cursor{b: payload}
	if f.Has(FlagPublishAcked) {
		p.RequestID = c.u64("request id")
		if c.bad != "" {
			return Publish{}, publishErr(c.bad)
		}
		p.Acked = true
		p.AckMode = AckMode(c.u8("ack mode"))
		if c.bad == "" && p.AckMode != AckPerMessage && p.AckMode != AckPerBatch {
			c.bad = "ack mode"
		}
	}
	if f.Has(FlagPublishIdempotent) {
		p.Idempotent = true
		p.ProducerID = c.u64("producer id")
		p.Sequence = c.u64("sequence")
	}
	if f.Has(FlagPublishKeyed) {
		p.Keyed = true
		p.Key = c.bytes16("key")
	}
	p.Tenant = c.text16("tenant")
	p.Namespace = c.text16("namespace")
	p.Stream = c.text16("stream")
	count := c.u32("count")
	if c.bad != "" {
		return failedPublish(p), publishErr(c.bad)
	}
	if p.Records, err = ParseRecords(count, c.b); err != nil {
		return failedPublish(p), err
	}
	return p, nil
}

// failedPublish keeps what is needed to answer.
func failedPublish(p Publish) Publish {
	return Publish{Acked: p.Acked, RequestID: p.RequestID}
}

func publishErr(field string) error { return malformed("publish", "bad "+field) }

// flags of the frame that carries p.
func (p *Publish) flags() Flags {
	f := FlagPublish
	if p.Acked {
		f |= FlagPublishAcked
	}
	if p.Idempotent {
		f |= FlagPublishIdempotent
	}
	if p.Keyed {
		f |= FlagPublishKeyed
	}
	return f
}

// payloadLen is the size of the frame's payload.
func (p *Publish) payloadLen() int {
	n := 6 + len(p.Tenant) + len(p.Namespace) + len(p.Stream) + 4 + len(p.Records.Bytes)
	if p.Acked {
		n += 9
	}
	if p.Idempotent {
		n += 16
	}
	if p.Keyed {
		n += 2 + len(p.Key)
	}
	return n
}

// Check reports why p cannot be sent: a name or key above 65535 bytes, an
// impossible combination, a frame above MaxPayload. AppendPublish needs a p
// that passes.
func (p *Publish) Check() error {
	const maxLen = 1<<16 - 1
	switch {
	case len(p.Tenant) > maxLen || len(p.Namespace) > maxLen || len(p.Stream) > maxLen:
		return publishErr("name: longer than 65535 bytes")
	case p.Keyed && len(p.Key) > maxLen:
		return publishErr("key: longer than 65535 bytes")
	case p.Acked && p.AckMode != AckPerMessage && p.AckMode != AckPerBatch:
		return publishErr("ack mode")
	case p.Idempotent && !p.Acked:
		return publishErr("request: idempotent without acked")
	}
	if n := p.payloadLen(); n > MaxPayload {
		return &TooLargeError{Length: uint32(min(uint64(n), math.MaxUint32)), Limit: MaxPayload}
	}
	return nil
}

// AppendPublish appends the whole frame. p must pass Check.
func AppendPublish(dst []byte, p *Publish) []byte {
	dst = AppendHeader(dst, p.flags(), p.payloadLen())
	if p.Acked {
		dst = binary.BigEndian.AppendUint64(dst, p.RequestID)
		dst = append(dst, byte(p.AckMode))
	}
	if p.Idempotent {
		dst = binary.BigEndian.AppendUint64(dst, p.ProducerID)
		dst = binary.BigEndian.AppendUint64(dst, p.Sequence)
	}
	if p.Keyed {
		dst = append16(dst, p.Key)
	}
	dst = append16(dst, p.Tenant)
	dst = append16(dst, p.Namespace)
	dst = append16(dst, p.Stream)
	dst = binary.BigEndian.AppendUint32(dst, p.Records.Count)
	return append(dst, p.Records.Bytes...)
}
