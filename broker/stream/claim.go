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
}

// staged is how far a chunk goes once the claim is committed.
type staged struct {
	c       *chunk
	upTo    int
	entries int
}

var claims sync.Pool

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
