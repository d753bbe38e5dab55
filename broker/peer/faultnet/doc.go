// Package faultnet is a network between the brokers of one process that fails on
// demand. It is for tests.
//
// Connections are real TCP connections over loopback with a relay in the middle, in
// the Network, that has both directions pass as the rules of the moment say. So a
// fault is felt by connections that exist, by both their ends, and sockets have the
// buffers and deadlines that they always have. All of it is at the dialing end: the
// listening one knows of nothing.
//
//	nw := faultnet.New(t, 0)
//	a := nw.Node("a")
//	transport, err := peer.Listen(ctx, peer.Config{NodeID: "a", DialNet: a.Dial, Resolve: a.Resolve, ...})
//	a.SetAddr(transport.Addr().String())
//	...
//	nw.Isolate("a")
//
// # Faults
//
// Cut, CutOneWay, Isolate and Partition are a cable that is pulled: what is sent
// waits, in the order it was sent, and so do ends of connections; connections stay,
// and dialing waits until its context ends. When the cut is healed everything that
// waited comes, as TCP would send it again. Some hundred KiB are taken from a sender
// before it must wait. Refuse is a process that is gone from a host that is there:
// dialing fails at once. Reset closes the connections that exist, Strand has them pass
// nothing ever again while new ones work. Delay has what
// passes arrive later without making a link narrower, Flaky closes connections at
// random.
//
// A node that restarts on another port says so with SetAddr; others resolve it there
// from then on, and those that dial the old address find nobody.
//
// # Seeds
//
// What is random comes from the seed, which New logs: for each connection by its ends
// and by how many there were between them before. The order in which goroutines run is
// not in it.
//
// # Goroutines
//
// Each connection has four: two that read and two that write. New's cleanup closes
// every connection and waits for all.
//
// # Files
//
// network.go: nodes and where they are. rules.go: what is wrong with which link.
// dial.go: a connection and its relay. relay.go: one direction of it.
package faultnet
