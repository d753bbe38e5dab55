package bufpool

import (
	"math/bits"
	"sync"
)

const (
	smallest      = 512
	largestPooled = 4 << 20
	classes       = 14 // 512 B, 1 KiB, ... 4 MiB
)

// pools holds buffers by size, each a power of two. They are package state because idle
// memory is a matter of the process, like the heap itself.
var pools [classes]sync.Pool

// Buffer is a pooled slice. The box travels with it, so that giving it back does not
// allocate.
type Buffer struct{ B []byte }

func classOf(n int) int {
	if n <= smallest {
		return 0
	}
	return bits.Len(uint(n-1)) - bits.Len(smallest-1)
}

// Room is the memory of a buffer for n bytes.
func Room(n int) int {
	class := classOf(n)
	if class >= classes {
		return n
	}
	return smallest << class
}

// Take gives an empty buffer with room for n bytes.
func Take(n int) *Buffer {
	class := classOf(n)
	if class >= classes {
		return &Buffer{B: make([]byte, 0, n)}
	}
	if b, ok := pools[class].Get().(*Buffer); ok {
		return b
	}
	return &Buffer{B: make([]byte, 0, smallest<<class)}
}

// Give returns the buffer to its pool. Nobody may use its bytes afterwards. Giving none
// is allowed.
func (b *Buffer) Give() {
	if b == nil {
		return
	}
	c := cap(b.B)
	if c < smallest || c > largestPooled {
		return
	}
	b.B = b.B[:0]
	// The class that the buffer can serve in full.
	pools[bits.Len(uint(c))-bits.Len(smallest)].Put(b)
}
