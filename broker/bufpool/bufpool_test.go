package bufpool

import "testing"

func TestBufferClasses(t *testing.T) {
	for _, n := range []int{0, 1, 512, 513, 1024, 4095, 64 << 10, 64<<10 + 1, 4 << 20, 4<<20 + 1, 16 << 20} {
		b := Take(n)
		if len(b.B) != 0 || cap(b.B) < n {
			t.Errorf("buffer for %d: length %d, capacity %d", n, len(b.B), cap(b.B))
		}
		b.Give()
		if again := Take(n); cap(again.B) < n {
			t.Errorf("second buffer for %d: capacity %d", n, cap(again.B))
		}
	}
	odd := &Buffer{B: make([]byte, 0, 700)} // grown elsewhere
	odd.Give()
	(*Buffer)(nil).Give()
}
