// Package bench is `felix bench`: it puts a load on a broker and reports, in one
// JSON object, how fast the broker was, what that cost it, and that every single
// delivery is accounted for.
//
// It is not a micro-benchmark (those are beside the code they measure) and not a
// test of correctness under faults. It sees a broker only through package client,
// like any other user.
//
// # How it measures
//
// The broker is a process of its own: the program starts itself a second time
// with the hidden command `bench broker`, so that CPU seconds and memory are
// known for the broker alone, from getrusage and /proc. The parent tells it on
// stdin when the measured part begins and ends, and it answers with one JSON
// object per line on stdout. When stdin ends, so does the broker.
//
// With --durability quorum the broker is a cluster: one such process for each broker, with
// the configuration that `felix dev-cluster` makes. What they use is summed up, and told
// for each. Clients connect to the broker that leads the stream, or to one that does not,
// as --through says; the cluster has come to rest before the load begins.
//
// The publisher of a fan-out keeps a window of bytes that are published and not
// yet delivered, counted against the slowest healthy subscriber. Nothing is
// dropped that way, the wire is never idle, and the volume of a run is many times
// what the buffers on the way hold.
//
// # Invariants
//
//   - Every record names its publisher and its place in that publisher's sequence,
//     and its body follows from both. A reader checks all of it: a record that is
//     lost, repeated, out of order or damaged cannot go unnoticed.
//   - unaccounted = expected - delivered - reported as dropped. It is 0 or the run
//     fails, whatever its speed.
//   - The load shares the machine with the broker, so a reader costs two counters
//     per batch and a comparison of the body per record; it reads the clock only
//     for the records that carry a time.
//   - Latency counts from the time at which a record should have been sent
//     (`latency --rate`) or was handed to the client library, to the return of
//     NextBatch, on one process's monotonic clock.
//
// # Who runs where
//
// A run has one goroutine for each publisher and one for each subscription that
// is read. A [tally] belongs to its reader, except for its counters. The session
// that started the goroutines waits for all of them.
package bench
