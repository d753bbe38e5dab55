package server

import (
	"math/bits"
	"sync"

	"felix.dev/felix/broker/wire"
	"felix.dev/felix/broker/wire/frameio"
)

const (
	smallestBuffer = 512
	// firstBytes is the memory that a frame gets when it is announced, and growBy how
	// many times what has arrived it gets from then on.
	firstBytes = 8 << 10
	growBy     = 8
	// largeFrame is above what most frames have: such a one takes room of its own
	// while it arrives.
	largeFrame    = 64 << 10
	largestPooled = 4 << 20
	bufferClasses = 14 // 512 B, 1 KiB, ... 4 MiB
)

// pools holds payload buffers by size, each a power of two. They are package
// state because idle memory is a matter of the process, like the heap itself.
var pools [bufferClasses]sync.Pool

// buffer is a pooled slice. The box travels with it, so that giving it back does
// not allocate.
type buffer struct{ b []byte }

func classOf(n int) int {
	if n <= smallestBuffer {
		return 0
	}
	return bits.Len(uint(n-1)) - bits.Len(smallestBuffer-1)
}

// takeBuffer gives an empty buffer with room for n bytes.
func takeBuffer(n int) *buffer {
	class := classOf(n)
	if class >= bufferClasses {
		return &buffer{b: make([]byte, 0, n)}
	}
	if b, ok := pools[class].Get().(*buffer); ok {
		return b
	}
	return &buffer{b: make([]byte, 0, smallestBuffer<<class)}
}

// give returns the buffer to its pool. Nobody may use its bytes afterwards.
func (b *buffer) give() {
	if b == nil {
		return
	}
	c := cap(b.b)
	if c < smallestBuffer || c > largestPooled {
		return
	}
	b.b = b.b[:0]
	// The class that the buffer can serve in full.
	pools[bits.Len(uint(c))-bits.Len(smallestBuffer)].Put(b)
}

// frameCost is what a frame counts for in a budget: the buffer it gets and what
// surrounds it, so that many tiny publishes cannot hold more than their bytes say.
func frameCost(length uint32) int64 {
	const around = 512
	class := classOf(int(length))
	if length > largeFrame || class >= bufferClasses {
		return int64(length) + around
	}
	return smallestBuffer<<class + around
}

// readPayload reads a frame's payload into a pooled buffer, which grows as bytes
// arrive. The buffer is the caller's, with an error too.
func readPayload(r *frameio.Reader, h wire.Header) (*buffer, error) {
	length := int(h.Length)
	var buf *buffer
	for have, size := 0, min(length, firstBytes); ; have, size = size, min(length, growBy*size) {
		larger := takeBuffer(size)
		if buf != nil {
			larger.b = append(larger.b, buf.b...)
			buf.give()
		}
		buf = larger
		part, err := r.Payload(wire.Header{Flags: h.Flags, Length: uint32(size - have)}, buf.b[have:have])
		buf.b = buf.b[:have+len(part)]
		if err != nil || size == length {
			return buf, err
		}
	}
}
