package seglog

// Journal is where a log's appends are durable before its own segment is: one file
// that many logs share. The log gives up what its segment holds with Release, and
// asks for the rest when it is opened (Replay).
type Journal interface {
	// Append writes the bytes of [from, next), which it copies. It returns before they
	// are durable and calls done with next, once, in the order of the appends; done
	// does not block. It returns false, and has done nothing, if the log should rather
	// flush its segment.
	Append(from, next uint64, data []byte, done func(next uint64, err error)) bool
	// Replay calls f with what is held, in the order of the appends.
	Replay(f func(from, next uint64, data []byte) error) error
	// Release says that everything below upTo is not needed any more.
	Release(upTo uint64)
}
