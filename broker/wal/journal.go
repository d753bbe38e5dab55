package wal

// Journal holds the bytes of one log that its own file does not hold durably yet.
type Journal struct{ l *Log }

// Journal returns the journal with this key, new or as recovery found it. Keys have
// 1 to 200 bytes.
func (l *Log) Journal(key string) (*Journal, error) { return &Journal{l: l}, nil }

// Append writes the bytes of [from, next). It copies data, and returns before they
// are durable; done is called once, with next, in the order of the appends of this
// journal, from the committer's goroutine: it must not block. It returns false, and
// has done nothing, if its log should flush its own file instead: because nobody else
// appends at the moment, or because this log can't.
func (j *Journal) Append(from, next uint64, data []byte, done func(next uint64, err error)) bool {
	return false
}

// Replay calls f with every append that is durable and not released, in order.
func (j *Journal) Replay(f func(from, next uint64, data []byte) error) error { return nil }

// Release says that everything below upTo is safe elsewhere. It does not wait.
func (j *Journal) Release(upTo uint64) {}

// Forget releases everything and ends the journal.
func (j *Journal) Forget() {}
