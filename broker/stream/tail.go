package stream

import (
	"math"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"felix.dev/felix/broker/wire"
)

const (
	firstChunk = 16 << 10
	// largestChunk bounds what one stalled reader can pin: the chunk that it is writing.
	largestChunk = 256 << 10
)

// position counts batches and bytes since the shard was opened. The difference of
// two positions is a lag.
type position struct{ entries, bytes uint64 }

func (p position) plus(entries, bytes int) position {
	return position{p.entries + uint64(entries), p.bytes + uint64(bytes)}
}

// chunk is a contiguous run of whole frames whose records have dense offsets.
type chunk struct {
	from uint64   // offset after the last record before it: what lies between is hidden
	base uint64   // offset of the first record
	at   position // where the first frame stands
	buf  []byte   // written by the ring's owner beyond visible only

	visible atomic.Int64          // committed bytes; what readers may see
	next    atomic.Pointer[chunk] // set after visible is final; cut when evicted
	evicted atomic.Bool           // set before next is cut

	staged int // bytes written; owner only
}

// tail is the ring of a shard's newest batches, encoded once as wire frames with
// offsets. The sequencer stages, the committer shows; readers are lock-free once
// they hold a chunk. Readers that want another shape convert their piece: a copy
// costs a hundredth of what sending it costs, a second ring costs its memory.
type tail struct {
	limit int64
	keep  func() position // batches from there on are not evicted; nil: all may be

	mu     sync.RWMutex // guards chunks and held
	chunks []*chunk     // oldest first, never empty once the first batch is staged
	held   int64        // capacity of chunks

	counts struct{ entries, bytes atomic.Uint64 } // committed
}

// position is where the committed end stands.
func (t *tail) position() position {
	return position{t.counts.entries.Load(), t.counts.bytes.Load()}
}

// room gives n writable bytes for the frame whose first record is at base, in the
// newest chunk if it continues there and fits, else in a new one.
func (t *tail) room(base uint64, n int, s staging) (*chunk, []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var last *chunk
	if len(t.chunks) > 0 {
		last = t.chunks[len(t.chunks)-1]
	}
	if last == nil || base != s.end || last.staged+n > len(last.buf) {
		size := firstChunk
		if last != nil {
			size = min(2*len(last.buf), largestChunk)
		}
		fresh := &chunk{from: s.end, base: base, at: s.at, buf: make([]byte, max(size, n))}
		t.chunks = append(t.chunks, fresh)
		t.held += int64(len(fresh.buf))
		last = fresh
	}
	b := last.buf[last.staged : last.staged : last.staged+n]
	last.staged += n
	return last, b
}

// unstage takes back what was staged in c beyond to; nothing of it was visible.
func (t *tail) unstage(c *chunk, to int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, k := range slices.Backward(t.chunks) {
		if k == c {
			k.staged = to
			if to == 0 && k.visible.Load() == 0 {
				t.drop(i)
			}
			return
		}
		t.drop(i)
	}
}

// drop removes chunk i, which no reader has seen. The caller holds mu.
func (t *tail) drop(i int) {
	t.held -= int64(len(t.chunks[i].buf))
	t.chunks[i] = nil
	t.chunks = t.chunks[:i]
}

// show makes c's bytes up to n readable.
func (t *tail) show(c *chunk, n int, entries int) {
	grown := n - int(c.visible.Load())
	first := c.visible.Load() == 0
	c.visible.Store(int64(n))
	if first {
		t.link(c)
	}
	t.counts.entries.Add(uint64(entries))
	t.counts.bytes.Add(uint64(grown))
}

// link lets readers of the chunk before c go on into c, and evicts old chunks.
func (t *tail) link(c *chunk) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := len(t.chunks) - 1; i > 0; i-- {
		if t.chunks[i] == c {
			t.chunks[i-1].next.Store(c)
			break
		}
	}
	if t.held <= t.limit {
		return
	}
	keep := position{math.MaxUint64, math.MaxUint64}
	if t.keep != nil {
		keep = t.keep()
	}
	n := 0
	for t.held > t.limit && n < len(t.chunks)-1 && t.chunks[n] != c && t.chunks[n+1].at.bytes <= keep.bytes {
		old := t.chunks[n]
		old.evicted.Store(true)
		old.next.Store(nil)
		t.held -= int64(len(old.buf))
		n++
	}
	if n > 0 {
		t.chunks = append(t.chunks[:0:0], t.chunks[n:]...)
	}
}

// bound changes how much the ring may hold; what is above it goes with the next chunk.
func (t *tail) bound(limit int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.limit = limit
}

// clear empties the ring. Who stages in a chunk of it begins another.
func (t *tail) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.chunks {
		c.evicted.Store(true)
		c.next.Store(nil)
	}
	t.chunks, t.held = nil, 0
}

// oldest is the first offset that can be read from the ring, be it hidden; ok is
// false while nothing is visible.
func (t *tail) oldest() (uint64, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if len(t.chunks) == 0 || t.chunks[0].visible.Load() == 0 {
		return 0, false
	}
	return t.chunks[0].from, true
}

func (t *tail) bytes() int64 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.held
}

// cursor is a reader's place in a ring: a frame boundary in a chunk.
type cursor struct {
	c  *chunk
	at int
}

// find gives the chunk that offset belongs to, nil if it lies before the ring.
func (t *tail) find(offset uint64) *chunk {
	t.mu.RLock()
	defer t.mu.RUnlock()
	n := sort.Search(len(t.chunks), func(i int) bool {
		c := t.chunks[i]
		return c.visible.Load() == 0 || c.from > offset
	})
	if n == 0 {
		return nil
	}
	return t.chunks[n-1]
}

// seek finds the frame that holds offset, or the first one after it when the
// offset lies in a hole. into is how many of the frame's records lie before offset.
func (t *tail) seek(offset uint64) (cur cursor, pos position, into uint32, ok bool) {
	c := t.find(offset)
	if c == nil {
		return cursor{}, position{}, 0, false
	}
	vis := int(c.visible.Load())
	at, base, pos := 0, c.base, c.at
	for at < vis {
		f, err := wire.PeekOffsetFrame(c.buf[at:vis])
		if err != nil {
			return cursor{}, position{}, 0, false
		}
		if offset < base+uint64(f.Count) {
			return cursor{c, at}, pos, uint32(offset - min(base, offset)), true
		}
		base += uint64(f.Count)
		at += f.Size
		pos = pos.plus(1, f.Size)
	}
	return cursor{c, at}, pos, 0, true
}

func (p position) minus(o position) position {
	return position{p.entries - min(o.entries, p.entries), p.bytes - min(o.bytes, p.bytes)}
}
