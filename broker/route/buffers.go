package route

import (
	"math/bits"
	"sync"
)

const (
	smallestBuffer = 512
	largestPooled  = 4 << 20
	bufferClasses  = 14 // 512 B, 1 KiB, ... 4 MiB
)

// pools holds buffers of records by size, each a power of two. They are package state
// because idle memory is a matter of the process, like the heap itself.
var pools [bufferClasses]sync.Pool

// buffer is a pooled slice. The box travels with it, so that giving it back does not
// allocate.
type buffer struct{ b []byte }

func classOf(n int) int {
	if n <= smallestBuffer {
		return 0
	}
	return bits.Len(uint(n-1)) - bits.Len(smallestBuffer-1)
}

// takeBuffer gives a buffer of n bytes.
func takeBuffer(n int) *buffer {
	class := classOf(n)
	if class >= bufferClasses {
		return &buffer{b: make([]byte, n)}
	}
	b, ok := pools[class].Get().(*buffer)
	if !ok {
		b = &buffer{b: make([]byte, smallestBuffer<<class)}
	}
	b.b = b.b[:n]
	return b
}

// give returns the buffer to its pool. Nobody may use its bytes afterwards.
func (b *buffer) give() {
	c := cap(b.b)
	if c > largestPooled {
		return
	}
	pools[classOf(c)].Put(b)
}
