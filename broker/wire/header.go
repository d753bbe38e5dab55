package wire

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Constants of the frame layout.
const (
	Magic   uint32 = 0x464C5831 // "FLX1"
	Version uint16 = 1
	// HeaderLen is the size of a frame header.
	HeaderLen = 12
	// MaxPayload is the largest payload of a frame, in both directions.
	MaxPayload = 16 << 20
	// PreauthMaxPayload is the largest payload before a stream authenticated.
	PreauthMaxPayload = 65536
	// MaxRecordsBytes is the largest region of records that fits every event
	// shape we send: base offset, skipped count and record count before it.
	MaxRecordsBytes = MaxPayload - 20
	// MaxRecord is the largest record we accept: alone in a frame it still
	// fits every event shape we send.
	MaxRecord = MaxRecordsBytes - 4
)

// Header is a frame header without its constant fields.
type Header struct {
	Flags  Flags
	Length uint32 // payload bytes
}

// ParseHeader reads the 12 bytes in front of a payload. Length is not checked
// here: the limit is the receiver's. Errors are DecodeErrors around ErrShort,
// ErrBadMagic, ErrBadVersion or an UnknownFlagsError; with the last one the
// header is returned all the same, so that the payload can be skipped.
func ParseHeader(b []byte) (Header, error) {
	if len(b) < HeaderLen {
		return Header{}, decodeErr("header", ErrShort)
	}
	if m := binary.BigEndian.Uint32(b); m != Magic {
		return Header{}, decodeErr("header", fmt.Errorf("%w %#08x", ErrBadMagic, m))
	}
	if v := binary.BigEndian.Uint16(b[4:]); v != Version {
		return Header{}, decodeErr("header", fmt.Errorf("%w %d", ErrBadVersion, v))
	}
	h := Header{Flags: Flags(binary.BigEndian.Uint16(b[6:])), Length: binary.BigEndian.Uint32(b[8:])}
	if unknown := h.Flags &^ KnownFlags; unknown != 0 {
		return h, decodeErr("header", &UnknownFlagsError{Flags: unknown})
	}
	return h, nil
}

// AppendHeader appends a frame header for a payload of payloadLen bytes, which
// must be at most MaxPayload.
func AppendHeader(dst []byte, f Flags, payloadLen int) []byte {
	if uint64(payloadLen) > math.MaxUint32 { // a negative length too
		panic("wire: invariant: payload length fits the header")
	}
	dst = binary.BigEndian.AppendUint32(dst, Magic)
	dst = binary.BigEndian.AppendUint16(dst, Version)
	dst = binary.BigEndian.AppendUint16(dst, uint16(f))
	return binary.BigEndian.AppendUint32(dst, uint32(payloadLen))
}

// Kind says what the payload is.
func (h Header) Kind() (Kind, error) { return h.Flags.Kind() }
