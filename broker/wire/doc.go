// Package wire is the client wire protocol: frames, binary bodies, JSON
// messages, error codes and the shard hash.
//
// It is pure: no I/O, no clock, no goroutines. Reading frames from a stream is
// the job of wire/frameio; deciding what may be sent to which peer (a flag or
// message only goes to a peer that offered it) is the job of the caller.
//
// Invariants:
//
//   - Decoding never trusts a number from the wire. A count or a length is
//     checked against the bytes that are there before it is used, and nothing
//     is allocated that the received bytes do not cover.
//   - [DecodePublish], [DecodeEvents], [ParseRecords] and the Peek functions do
//     not allocate; what they return are sub-slices of their input and live as
//     long as it does. [DecodeAck] and [DecodeMessage] copy.
//   - A flag that is not known, or not possible on its frame, is refused and
//     never masked off.
//   - A record region ([Records].Bytes) has the same bytes in a publish and in
//     an event frame, so that a batch is never re-encoded on its way through.
//
// All functions may be called from any goroutine. Values are plain data and
// are not synchronised.
//
// The layout is described in docs/format/wire.md.
package wire
