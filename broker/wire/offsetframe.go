package wire

import (
	"encoding/binary"
	"math"
)

// The ring, the log and the wire share two whole-frame layouts, so that bytes
// are laid out once:
//
//	offset frame (flags 0x0024): header | u64 base | u32 count | records
//	plain frame  (flags 0x0004): header | u32 count | records
const (
	OffsetFrameOverhead = HeaderLen + 12
	PlainFrameOverhead  = HeaderLen + 4

	offsetFrameFlags = FlagEvents | FlagEventOffsets
	plainFrameFlags  = FlagEvents
)

// BeginOffsetFrame appends everything of an offset frame but its records; the
// caller appends recordBytes of them.
func BeginOffsetFrame(dst []byte, base uint64, count uint32, recordBytes int) []byte {
	dst = AppendHeader(dst, offsetFrameFlags, OffsetFrameOverhead-HeaderLen+recordBytes)
	dst = binary.BigEndian.AppendUint64(dst, base)
	return binary.BigEndian.AppendUint32(dst, count)
}

// BeginPlainFrame appends everything of a plain frame but its records; the
// caller appends recordBytes of them.
func BeginPlainFrame(dst []byte, count uint32, recordBytes int) []byte {
	dst = AppendHeader(dst, plainFrameFlags, PlainFrameOverhead-HeaderLen+recordBytes)
	return binary.BigEndian.AppendUint32(dst, count)
}

// FrameInfo describes a frame from its first bytes.
type FrameInfo struct {
	Base  uint64 // 0 for a plain frame
	Count uint32 // at least 1
	Size  int    // of the whole frame
}

// PeekOffsetFrame reads the fixed part of the offset frame that b starts with.
// It does not look at the records, and b may end before the frame does: the
// caller compares Size with what it has.
func PeekOffsetFrame(b []byte) (FrameInfo, error) {
	if len(b) < OffsetFrameOverhead {
		return FrameInfo{}, decodeErr("offset frame", ErrShort)
	}
	fi, err := peekFrame(b, offsetFrameFlags, OffsetFrameOverhead)
	if err != nil {
		return FrameInfo{}, err
	}
	fi.Base = binary.BigEndian.Uint64(b[HeaderLen:])
	if fi.Base > math.MaxUint64-uint64(fi.Count) {
		return FrameInfo{}, malformed("offset frame", "offsets run past 64 bits")
	}
	return fi, nil
}

// PeekPlainFrame is PeekOffsetFrame for a plain frame.
func PeekPlainFrame(b []byte) (FrameInfo, error) {
	if len(b) < PlainFrameOverhead {
		return FrameInfo{}, decodeErr("plain frame", ErrShort)
	}
	return peekFrame(b, plainFrameFlags, PlainFrameOverhead)
}

// peekFrame checks header and count of a frame whose count is the last field
// of its fixed part.
func peekFrame(b []byte, want Flags, overhead int) (FrameInfo, error) {
	h, err := ParseHeader(b)
	if err != nil {
		return FrameInfo{}, err
	}
	fixed := overhead - HeaderLen
	switch {
	case h.Flags != want:
		return FrameInfo{}, flagsErr(h.Flags, "not the expected event frame")
	case h.Length < uint32(fixed) || h.Length > MaxPayload:
		return FrameInfo{}, malformed("event frame", "impossible length")
	}
	count := binary.BigEndian.Uint32(b[overhead-4:])
	if count == 0 || uint64(count)*recordOverhead > uint64(h.Length)-uint64(fixed) {
		return FrameInfo{}, malformed("event frame", "impossible count")
	}
	return FrameInfo{Count: count, Size: HeaderLen + int(h.Length)}, nil
}

// AppendWithSkip appends the offset frame in its form with skipped offsets
// (flags 0x0824). offsetFrame must be one whole frame.
func AppendWithSkip(dst, offsetFrame []byte, skipped uint64) []byte {
	mustBeOffsetFrame(offsetFrame)
	dst = AppendHeader(dst, offsetFrameFlags|FlagEventSkipped, len(offsetFrame)-HeaderLen+8)
	dst = append(dst, offsetFrame[HeaderLen:HeaderLen+8]...)
	dst = binary.BigEndian.AppendUint64(dst, skipped)
	return append(dst, offsetFrame[HeaderLen+8:]...)
}

// AppendAsPlain appends the offset frame without its offset (flags 0x0004).
// offsetFrame must be one whole frame.
func AppendAsPlain(dst, offsetFrame []byte) []byte {
	mustBeOffsetFrame(offsetFrame)
	dst = AppendHeader(dst, plainFrameFlags, len(offsetFrame)-HeaderLen-8)
	return append(dst, offsetFrame[HeaderLen+8:]...)
}

// AppendFrom appends the part of the offset frame from offset from on: the
// whole frame if it begins there or later. It is an error if the frame ends
// before from, or is not a whole, well formed frame.
func AppendFrom(dst, offsetFrame []byte, from uint64) ([]byte, error) {
	fi, err := PeekOffsetFrame(offsetFrame)
	if err != nil {
		return dst, err
	}
	switch {
	case fi.Size != len(offsetFrame):
		return dst, malformed("offset frame", "not one whole frame")
	case from <= fi.Base:
		return append(dst, offsetFrame...), nil
	case from-fi.Base >= uint64(fi.Count):
		return dst, malformed("offset frame", "it ends before the offset asked for")
	}
	skip := uint32(from - fi.Base)
	rest := offsetFrame[OffsetFrameOverhead:]
	for range skip {
		_, after, ok := cutRecord(rest, recordOverhead)
		if !ok {
			return dst, malformed("offset frame", "record length runs past the frame")
		}
		rest = after
	}
	if err := checkRecords(fi.Count-skip, rest, recordOverhead); err != nil {
		return dst, err
	}
	dst = BeginOffsetFrame(dst, from, fi.Count-skip, len(rest))
	return append(dst, rest...), nil
}

// mustBeOffsetFrame guards the functions that cannot report an error: their
// frames come from our own ring and log, which checked them.
func mustBeOffsetFrame(b []byte) {
	if len(b) < OffsetFrameOverhead || Flags(binary.BigEndian.Uint16(b[6:])) != offsetFrameFlags ||
		uint64(binary.BigEndian.Uint32(b[8:]))+HeaderLen != uint64(len(b)) {
		panic("wire: invariant: argument is one whole offset frame")
	}
}
