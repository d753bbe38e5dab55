// Command framelog stands between a client and a broker and prints every frame that passes.
//
// It is how it was found out what the published client really sends (docs/format/wire.md), and the tool to take
// when a new version of it and the broker do not understand each other:
//
//	go run ./test/conformance/framelog --to 127.0.0.1:5000 --cert data/tls/tls.crt --key data/tls/tls.key
//
// The certificate and key are the ones that the client trusts: with the broker's own, nothing changes for the
// client but the address. ALPN is offered to the broker exactly as the client offered it.
//
// A line is the time since the start, the connection, the QUIC stream as its opener numbers it (b0 is the client's
// first bidirectional one, u3 the broker's first unidirectional one), the direction, and the frame: JSON as it is,
// but for the token, or the flags, length and first bytes of a binary one. Ends of streams and connections are
// lines as well, and a closed connection is summed up.
//
// It is not a proxy for anything but looking: it copies bytes as they come and checks nothing, its windows are its
// own, and it stops on SIGINT or SIGTERM. One goroutine copies each direction of each stream; they end with their
// connection, and main waits for them.
package main
