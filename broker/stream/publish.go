package stream

import (
	"time"

	"felix.dev/felix/broker/wire"
)

// Publish is one publisher's batch on its way into a shard.
type Publish struct {
	// Records is at least one record; it stays untouched and readable until Done is called.
	Records wire.Records
	// With HasProducer the batch is answered once per (Producer, Sequence).
	HasProducer        bool
	Producer, Sequence uint64
	// Done is called exactly once, possibly before Shard.Publish returns, from
	// whichever goroutine commits. It must neither block nor call the shard.
	Done func(Result)

	hidden bool      // a generation start: takes one offset, is never delivered
	digest uint64    // of Records, with HasProducer
	offset uint64    // of the first record, once sequenced
	since  time.Time // when it was handed in, if a reader may hold it up
}

// Result is the outcome of one Publish: the offset of its first record, or a
// *Error or *RefusedError. Owner is who wrote it, if it was another broker.
type Result struct {
	Offset uint64
	Err    error
	Owner  *Owner
}
