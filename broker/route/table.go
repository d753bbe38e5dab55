package route

import "felix.dev/felix/broker/stream"

// Key names a shard for good: a stream that is made again under its name is another
// incarnation, so that what was meant for the first can never reach the second.
type Key struct {
	Incarnation string // 32 hexadecimal digits
	Shard       uint32
}

// State is who serves a shard, as far as this broker knows.
type State struct {
	// Local is the shard, if this broker serves it now.
	Local *stream.Shard
	// Node and Addr are the broker that serves it otherwise, and its address for clients,
	// if that is known. Node is never this broker.
	Node, Addr string
	// Generation grows with every change of who serves it: the term or the epoch.
	Generation uint64
	// Reason says why, with neither of them, nobody is known for the moment:
	// stream.ReasonNotReady or another. Empty is ReasonNotReady.
	Reason string
	// Gone says that there is no such shard: its stream was deleted, or is not known here
	// yet. With it the rest is empty.
	Gone bool
}

// Table knows who serves what. Its methods are called from any goroutine, often, and do
// not block.
type Table interface {
	Lookup(Key) State
	// Changed is closed when an answer of Lookup may have changed since the call. It is
	// called before Lookup by who wants to miss nothing.
	Changed() <-chan struct{}
}
