// Package peer is how the brokers of a cluster talk to each other: TCP connections
// with mutual TLS, each for one kind of talk, between brokers that have made sure who
// the other one is. docs/format/peer.md has the bytes.
//
// One listener takes all incoming connections. After TLS the dialing side says hello:
// who it is, of which cluster, whom it means and what the connection is for. The
// answer opens the connection or refuses it. What is said then is the business of the
// kind's handler, except for calls: requests with an answer in JSON, which the package
// sends and answers itself.
//
// The package does not know what a quorum group, a shard or a catalog is, keeps no
// list of brokers, finds nobody (Config.Resolve does) and never dials on its own: who
// needs a connection opens one and opens another when it breaks. Only connections for
// calls are kept for the next one.
//
// # Invariants
//
//   - On an open connection both sides have shown certificates of a CA of the cluster,
//     valid at that moment, that name the nodes they say they are; and neither is of
//     another cluster or another node than the other one meant. Package pki has the
//     rules of names. Who shares a certificate for every node trusts its holders to be
//     any of them.
//   - Addresses, certificates and CAs are asked for at each connection: what changed
//     holds from the next one on. Connections that are open stay.
//   - An error of Dial means that nothing was said. An error of Call is the handler's
//     own (*Error), or it says whether the call may have been carried out: only with
//     ErrUnanswered.
//   - Calls are not repeated, except when nothing of the first try was sent.
//
// # Bounds
//
// All that is before an open connection has a deadline. Of connections that say
// nothing the oldest goes when there are too many, so that they keep nobody out.
// Connections by peer and in total, the bytes of a call and of its answer, the memory
// of all incoming calls, the calls to one peer, the time of a call and how long a
// connection for calls idles: all of Config. A connection of another kind may say
// nothing for as long as both hosts live, but not for much longer than a host: one
// that takes no bytes, or is not there anymore, ends it. Whoever needs an answer sets
// a deadline.
//
// # Goroutines
//
// One accepts. Each incoming connection has one for its handshake, which becomes its
// handler's, and one more if it is for calls; each connection for calls that goes out
// has one that reads. Close waits for all of them, and so for handlers, whose contexts
// end first.
//
// # Files
//
// config.go: what a broker is told. kind.go: what connections are for. errors.go: what
// goes wrong. transport.go: the listener's life and what is counted. accept.go: incoming
// connections until their handler. dial.go: outgoing ones. hello.go: the hello and its
// answer. tls.go: whom to believe. conn.go: a connection and its end. dead_*.go:
// a peer that takes nothing. call.go: calling.
// callconn.go: a connection for calls. callpool.go: those that idle. callserver.go:
// answering calls. frame.go: the bytes of a call.
package peer
