package server

import (
	"felix.dev/felix/broker/bufpool"
	"felix.dev/felix/broker/wire"
	"felix.dev/felix/broker/wire/frameio"
)

const (
	// firstBytes is the memory that a frame gets when it is announced, and growBy how
	// many times what has arrived it gets from then on.
	firstBytes = 8 << 10
	growBy     = 8
	// largeFrame is above what most frames have: such a one takes room of its own
	// while it arrives.
	largeFrame = 64 << 10
)

// frameCost is what a frame counts for in a budget: the buffer it gets and what
// surrounds it, so that many tiny publishes cannot hold more than their bytes say.
func frameCost(length uint32) int64 {
	const around = 512
	if length > largeFrame {
		return int64(length) + around
	}
	return int64(bufpool.Room(int(length))) + around
}

// readPayload reads a frame's payload into a pooled buffer, which grows as bytes
// arrive. The buffer is the caller's, with an error too.
func readPayload(r *frameio.Reader, h wire.Header) (*bufpool.Buffer, error) {
	length := int(h.Length)
	var buf *bufpool.Buffer
	for have, size := 0, min(length, firstBytes); ; have, size = size, min(length, growBy*size) {
		larger := bufpool.Take(size)
		if buf != nil {
			larger.B = append(larger.B, buf.B...)
			buf.Give()
		}
		buf = larger
		part, err := r.Payload(wire.Header{Flags: h.Flags, Length: uint32(size - have)}, buf.B[have:have])
		buf.B = buf.B[:have+len(part)]
		if err != nil || size == length {
			return buf, err
		}
	}
}
