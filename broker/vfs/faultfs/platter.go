package faultfs

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// resize returns b with n bytes; what is new is zeros.
func resize(b []byte, n int) []byte {
	if n <= len(b) {
		return b[:n]
	}
	if n <= cap(b) {
		was := len(b)
		b = b[:n]
		clear(b[was:])
		return b
	}
	grown := make([]byte, n, max(n, 2*cap(b)))
	copy(grown, b)
	return grown
}

func (n *node) touch(from, to int64) {
	for s := from / sectorLen; s*sectorLen < to; s++ {
		n.dirty[s] = struct{}{}
	}
}

func (n *node) write(b []byte, off int64) {
	end := off + int64(len(b))
	if end > int64(len(n.data)) {
		n.data = resize(n.data, int(end))
	}
	copy(n.data[off:], b)
	n.touch(off, end)
}

func (n *node) truncate(size int64) {
	was := int64(len(n.data))
	n.data = resize(n.data, int(size))
	// What the platter holds there stays until a flush says that it is gone, also if
	// the file grows again before that.
	n.touch(min(size, was), max(size, was))
}

// settle copies one sector to the platter, as far as it lies below its size.
func (n *node) settle(s int64) {
	from := s * sectorLen
	if to := min(from+sectorLen, int64(len(n.data)), int64(len(n.disk))); from < to {
		copy(n.disk[from:to], n.data[from:to])
	}
}

func (n *node) flush() {
	n.disk = resize(n.disk, len(n.data))
	for s := range n.dirty {
		n.settle(s)
	}
	clear(n.dirty)
}

// sectors returns the dirty sectors in order, so that a seed decides everything.
func (n *node) sectors() []int64 { return slices.Sorted(maps.Keys(n.dirty)) }

// writeBack lets a run of dirty sectors get to the platter.
func (n *node) writeBack(rng *rand.Rand) {
	dirty := n.sectors()
	from := rng.IntN(len(dirty))
	run := dirty[from : from+1+rng.IntN(len(dirty)-from)]
	if end := min((run[len(run)-1]+1)*sectorLen, int64(len(n.data))); end > int64(len(n.disk)) {
		n.disk = resize(n.disk, int(end))
	}
	for _, s := range run {
		n.settle(s)
		delete(n.dirty, s)
	}
}

// Policy is what a power cut does to what wasn't flushed; see the package comment.
type Policy uint8

// The policies.
const (
	Drop Policy = iota
	Keep
	Random
)

// CrashImage returns what a power cut at this moment would leave, as a file system
// of its own without faults. The seed decides what Random does.
func (f *FS) CrashImage(p Policy, seed uint64) *FS {
	f.mu.Lock()
	defer f.mu.Unlock()
	image := New(seed)
	c := cutter{policy: p, rng: newRand(seed), done: map[*node]*node{}}
	image.root = c.cut(f.root)
	return image
}

type cutter struct {
	policy Policy
	rng    *rand.Rand
	done   map[*node]*node // files with several names stay one file
}

func (c *cutter) keeps() bool { return c.rng.IntN(2) == 0 }

func (c *cutter) cut(n *node) *node {
	if out, ok := c.done[n]; ok {
		return out
	}
	out := &node{dir: n.dir}
	c.done[n] = out
	if n.dir {
		out.names, out.durable = map[string]*node{}, map[string]*node{}
		left := c.names(n)
		for _, name := range slices.Sorted(maps.Keys(left)) {
			child := c.cut(left[name])
			out.names[name], out.durable[name] = child, child
		}
		return out
	}
	out.dirty = map[int64]struct{}{}
	out.data = c.content(n)
	out.disk = slices.Clone(out.data)
	return out
}

func (c *cutter) names(n *node) map[string]*node {
	switch c.policy {
	case Keep:
		return n.names
	case Random:
		left := maps.Clone(n.durable)
		for _, s := range n.pending {
			if !c.keeps() {
				continue
			}
			for name, to := range s {
				if to == nil {
					delete(left, name)
				} else {
					left[name] = to
				}
			}
		}
		return left
	default:
		return n.durable
	}
}

func (c *cutter) content(n *node) []byte {
	switch c.policy {
	case Keep:
		return slices.Clone(n.data)
	case Random:
		size := len(n.disk)
		if !c.keeps() {
			size = len(n.data)
			if grown := (size - len(n.disk)) / sectorLen; grown > 0 && c.keeps() {
				size = len(n.disk)/sectorLen*sectorLen + c.rng.IntN(grown+1)*sectorLen
				size = max(size, len(n.disk))
			}
		}
		left := node{data: n.data, disk: resize(slices.Clone(n.disk), size)}
		for _, s := range n.sectors() {
			if c.keeps() {
				left.settle(s)
			}
		}
		return left.disk
	default:
		return slices.Clone(n.disk)
	}
}
