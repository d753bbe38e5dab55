// Package fakebroker is a broker for the client's own tests: it speaks the wire protocol over QUIC on 127.0.0.1, keeps
// streams in memory, and does what a test's script says where a real broker would not.
//
// It is not a broker: nothing is durable, nothing is bounded, and only one token is known.
//
// Hooks run on the broker's goroutines, several at a time; they must not call Close or Kill. All other methods may be
// called from any goroutine.
package fakebroker
