package stream

import (
	"sync"
	"sync/atomic"

	"felix.dev/felix/broker/seglog"
)

// claim is what one append takes: some publishes, encoded into some frames.
type claim struct {
	users     atomic.Int32 // the sequencer while it appends, and who answers; the last one releases
	publishes []*Publish
	echoes    []*Publish // re-sent batches, answered with the first one's commit
	frames    []staged
	end       uint64
	records   []seglog.Record
	buf       []byte // of frames that do not go into the ring
}

// staged is how far a chunk goes once the claim is committed.
type staged struct {
	c       *chunk
	upTo    int
	entries int
}

var claims sync.Pool

// keptClaim bounds the memory that a claim keeps for frames.
const keptClaim = 1 << 20

func newClaim() *claim {
	c, ok := claims.Get().(*claim)
	if !ok {
		c = new(claim)
	}
	c.users.Store(1)
	return c
}

// room gives n writable bytes that stay until the claim is released.
func (c *claim) room(n int) []byte {
	if len(c.buf)+n > cap(c.buf) {
		c.buf = make([]byte, 0, max(n, min(2*cap(c.buf), keptClaim), 16<<10)) // frames before stay where they are
	}
	at := len(c.buf)
	c.buf = c.buf[:at+n]
	return c.buf[at : at : at+n]
}

// release is called by each user of a claim; the last one gives it back.
func (c *claim) release() {
	if c.users.Add(-1) > 0 {
		return
	}
	clear(c.publishes)
	clear(c.echoes)
	clear(c.frames)
	clear(c.records)
	c.publishes, c.echoes, c.frames, c.records = c.publishes[:0], c.echoes[:0], c.frames[:0], c.records[:0]
	if c.buf = c.buf[:0]; cap(c.buf) > keptClaim {
		c.buf = nil
	}
	claims.Put(c)
}

// fail answers every publish of a claim with an error, and is done with it.
func (c *claim) fail(err error) {
	for _, p := range c.publishes {
		p.Done(Result{Err: err})
	}
	for _, p := range c.echoes {
		p.Done(Result{Err: err})
	}
	c.release()
}
