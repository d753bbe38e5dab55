// Package history records what publishers and readers of a broker or a cluster have met, and finds out afterwards
// whether a log that keeps its promises could have told it so.
//
// It is not a load and injects no faults: whoever publishes and reads calls a [Recorder], and at the end [Check] says
// what is wrong with the [History], as a list of [Violation]. It knows the wire's offsets, hidden records included, and
// nothing of brokers.
//
// # What is held
//
//   - Acked is kept: an acknowledged record is in the final log, at the offset that was named (unless the stream forgets).
//   - One offset never has two records, and a record never two offsets, whoever says so: acknowledgements, readers,
//     final reads, through any broker and at any time. Only a source that may repeat may have a record twice.
//   - What was refused is nowhere. What has no answer, or an unknown outcome, is there once or not at all.
//   - What is there was published, and not before it was.
//   - A source's records stand in the order in which it published them, unless it may reorder.
//   - A reader gets offsets in order, each once; what it does not get was said to be hidden or lost.
//   - In real time: a record whose publish began after another one was acknowledged, or delivered, stands behind it, and a
//     reader that begins at the end begins behind everything that was acknowledged before. Package porcupine looks for a
//     linearization of a part of the history; what is checked of all of it is the same in a form that costs n log n.
//
// # Goroutines
//
// A Recorder may be used from any goroutine. The checks are functions of a value and start none of their own, porcupine
// does and waits for them.
//
// # Files
//
//	record.go     records that can be told apart, as bytes
//	recorder.go   what happened, as it happens
//	history.go    what happened, as a value
//	check.go      who contradicts whom about offsets, and what is missing
//	readers.go    what each reader has seen
//	realtime.go   order in real time, of everything
//	linear.go     order in real time, by a checker that knows nothing else
//	violation.go  what is wrong, in words
package history
