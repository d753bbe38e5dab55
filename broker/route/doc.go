// Package route takes publishes to the broker that serves their shard. A client may
// publish to any broker of a cluster and is never redirected, so that this is what makes
// a cluster out of brokers as far as publishers can tell.
//
// A [Forwarder] has a [Place] for each shard, which hands a batch to the shard if it is
// here, sends it to its owner over a connection of package peer if not, and holds it for
// a while if nobody is known. A [Receiver] is the other end of such connections. Who
// serves what is the assembly's to say: a [Table]. docs/format/forward.md has the bytes.
//
// What it is not: it decides nothing about who serves a shard, and knows no catalog, no
// group and no client. Subscriptions are redirected by package server.
//
// # Invariants
//
//   - Every publish is answered exactly once, within Config.AnswerTimeout of when it was
//     first held or sent to another broker.
//   - A refusal of a retry class other than outcome_unknown means that nothing was written.
//     What may have been written is never sent again unless it is idempotent.
//   - What a place has under way is with one taker at a time, in order, and nothing follows
//     until what came back is in order again: no batch overtakes another of its shard. The
//     owner helps: of a round of which it refused something it takes nothing more.
//   - A Receiver never sends on. A hint of an owner is believed only if it is of a later
//     generation than was asked.
//   - A shard is named by its stream's incarnation: nothing that was meant for a deleted
//     stream reaches its successor.
//   - What waits is bounded in bytes and entries for each shard and each owner, and held
//     publishes in number; a stuck shard has a window of its connection and no more.
//   - Records are copied at most once on each side, from the publisher's frame to the
//     connection, and belong to the publisher again when he is answered.
//   - What waits is sent when the table changes, not by polling. Only an owner that is
//     known and takes nothing is asked again after a while.
//
// # Goroutines
//
// A Forwarder has one that looks after what waits, and three for each open connection: it
// is written, read and watched. Forwarder.Close waits for them. Answers come from these or
// from whoever commits. Receiver.Serve has a second one that writes answers and waits for it.
//
// # Files
//
// Sending:
//
//	table.go      who serves what               config.go     what a Forwarder is told
//	forwarder.go  all places and links          place.go      one shard, as this broker sees it
//	pump.go       what waits goes on            watch.go      what waits is looked after
//	entry.go      one publish                   refusal.go    what refusals mean
//	link.go       the connection to an owner    session.go    while it lasts
//	settle.go     its answers
//
// Receiving: receiver.go, incoming.go (one connection). Both
// sides: frame.go (publishes), answer.go (results and acks).
package route
