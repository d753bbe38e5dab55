package wire

import "encoding/binary"

// Ack is the binary answer to an acked publish.
type Ack struct {
	OK        bool
	RequestID uint64
	Message   string // empty when OK

	HasCode bool // failed acks only
	Code    Code
	Retry   Retry

	HasDetail    bool   // needs HasCode
	Reason       string // empty: none
	RetryAfterMS uint64 // 0: no suggestion

	HasOwner             bool // another broker wrote the batch
	OwnerNode, OwnerAddr string
	Generation           uint64

	HasOffset bool   // successful acks only
	Offset    uint64 // of the first record; record i is at Offset+i
}

// DecodeAck reads the payload of an ack frame. An unknown code is kept as its
// number; an unknown retry class is read as RetryFatal.
func DecodeAck(f Flags, payload []byte) (Ack, error) {
	kind, err := f.Kind()
	if err != nil {
		return Ack{}, err
	}
	if kind != KindAck {
		return Ack{}, flagsErr(f, "not an ack frame")
	}
	c := cursor{b: payload}
	status := c.u8("status")
	a := Ack{OK: status == 0, RequestID: c.u64("request id"), Message: string(c.text16("message"))}
	switch {
	case c.bad == "" && status > 1:
		c.bad = "status"
	case a.OK && f.Has(FlagAckCode):
		return Ack{}, malformed("ack", "code on a successful ack")
	case !a.OK && f.Has(FlagAckOffset):
		return Ack{}, malformed("ack", "offset on a failed ack")
	}
	if f.Has(FlagAckCode) {
		a.HasCode = true
		a.Code = Code(c.u16("code"))
		if a.Retry = Retry(c.u8("retry")); !a.Retry.valid() {
			a.Retry = RetryFatal
		}
	}
	if f.Has(FlagAckDetail) {
		a.HasDetail = true
		a.Reason = string(c.text16("reason"))
		a.RetryAfterMS = c.u64("retry after")
	}
	if f.Has(FlagAckOwner) {
		a.HasOwner = true
		a.OwnerNode = string(c.text16("owner node"))
		a.OwnerAddr = string(c.text16("owner address"))
		a.Generation = c.u64("generation")
	}
	if f.Has(FlagAckOffset) {
		a.HasOffset = true
		a.Offset = c.u64("offset")
	}
	if c.bad != "" {
		return Ack{}, malformed("ack", "bad "+c.bad)
	}
	if len(c.b) != 0 {
		return Ack{}, malformed("ack", "bytes left over")
	}
	return a, nil
}

// AppendAck appends the whole frame. What an ack of this status cannot carry is
// left out: a code or detail on a success, an offset on a failure. Texts above
// 65535 bytes are cut.
func AppendAck(dst []byte, a *Ack) []byte {
	const maxText = 1<<16 - 1
	f := FlagAck
	message, node, addr, reason := clip(a.Message, maxText), "", "", ""
	n := 11 + len(message)
	if !a.OK && a.HasCode {
		f |= FlagAckCode
		n += 3
		if a.HasDetail {
			f |= FlagAckDetail
			reason = clip(a.Reason, maxText)
			n += 10 + len(reason)
		}
	}
	if a.HasOwner {
		f |= FlagAckOwner
		node, addr = clip(a.OwnerNode, maxText), clip(a.OwnerAddr, maxText)
		n += 12 + len(node) + len(addr)
	}
	if a.OK && a.HasOffset {
		f |= FlagAckOffset
		n += 8
	}
	dst = AppendHeader(dst, f, n)
	status := byte(1)
	if a.OK {
		status = 0
	}
	dst = append(dst, status)
	dst = binary.BigEndian.AppendUint64(dst, a.RequestID)
	dst = append16(dst, message)
	if f.Has(FlagAckCode) {
		dst = binary.BigEndian.AppendUint16(dst, uint16(a.Code))
		dst = append(dst, byte(a.Retry))
	}
	if f.Has(FlagAckDetail) {
		dst = append16(dst, reason)
		dst = binary.BigEndian.AppendUint64(dst, a.RetryAfterMS)
	}
	if f.Has(FlagAckOwner) {
		dst = append16(dst, node)
		dst = append16(dst, addr)
		dst = binary.BigEndian.AppendUint64(dst, a.Generation)
	}
	if f.Has(FlagAckOffset) {
		dst = binary.BigEndian.AppendUint64(dst, a.Offset)
	}
	return dst
}
