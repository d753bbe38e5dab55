// Package server is the QUIC side of a broker: the listener, its connections,
// and a session for each stream that a client opens.
//
// What it is not: it holds no records and no catalog. A stream's shards come from
// a [Directory], tokens are judged by an [Authenticator], and what a subscription
// delivers is written by package egress.
//
// # Who runs where
//
// A connection has two accept loops, one for each kind of client stream, and a
// goroutine for each stream that is open. Answers to publishes come from the
// goroutine that commits them: they are appended to the stream's [answers] and
// written from a goroutine that lives as long as there are some, so that nothing a
// client does can hold up a commit. The feeder of a subscription belongs to egress.
//
// # Invariants
//
//   - Before a stream has authenticated nothing of it is kept but one frame of at
//     most 64 KiB, and at most 16 such streams of a connection are read at a time.
//     A connection that opens hundreds of them is closed.
//   - A length that was announced reserves 8 KiB before its bytes arrive, and from
//     then on at most eight times what has arrived; the bytes of a connection's
//     publishes are bounded whatever they announce.
//   - What waits for the client (for the rest of a frame, for its answers to be read)
//     holds nothing that its other streams or other connections wait for, but for a
//     frame of at most 64 KiB; answers that are not read end their stream.
//   - Every acked publish gets exactly one answer, and an unacked one none: not
//     even when it is refused.
//   - A bit, code or field is sent only to a client that offered it on that stream.
//   - An answer is handed to QUIC before its stream is finished.
//   - A subscription's hello is written before anything else on its event stream,
//     and "subscribed" before its first event.
//   - Locks are leaves, but for connection.mu, which is held while a budget.mu is
//     taken (docs/locks.md).
//
// # Files
//
//	server.go      lifecycle                   listener.go   TLS and QUIC settings
//	gate.go        connections in total        window.go     receive windows in total
//	connection.go  accept loops, deadline      session.go    one stream: frames in
//	answers.go     one stream: answers out     admission.go  bytes of publishes held
//	route.go       name to stream, decided     refusal.go    errors to answers
//	path.go        connections whose path is lost
//	buffers.go     frames into memory          eventstream.go  where a feeder writes
//	elsewhere.go   shards of other brokers
//	config.go      what it is told             selfsigned.go   a certificate of its own
//	followed.go    files that are followed: certificate.go, clientauth.go
//	auth.go, publish.go, publishjson.go, producer.go, subscribe.go, topology.go,
//	shards.go, unsupported.go: a request kind each
package server
