// Package frameio reads frames of the client protocol from a stream of bytes.
//
// It knows headers, limits and ends of streams, not what a payload means; that
// is wire's. It does not write: a writer hands whole frames to its stream.
//
// Invariants:
//
//   - Nothing is allocated because of a length that was only announced. The
//     memory for a payload grows as its bytes arrive.
//   - io.EOF is returned at a frame boundary and nowhere else; an end inside a
//     frame is io.ErrUnexpectedEOF.
//
// A Reader belongs to one goroutine.
package frameio
