// Package stream holds what a shard is: an ordered log of records with dense
// offsets, its committed mark, the tail ring that live readers share, and the
// subscriptions that read it.
//
// What it is not: it knows no QUIC, no frames off a network and no files. Records
// come in as the byte region of a publish, a [Log] keeps them, and a reader gets
// pieces of encoded frames from [Subscription.Next], which package egress writes.
//
// # How a record travels
//
//	Publish -> queue -> sequencer: claim, idempotence, frames encoded into the tail ring (not visible)
//	        -> Log.Append -> committed: ring bytes become visible, mark advances, watchers wake, Done is called
//
// # Invariants
//
//   - One sequencer at a time runs for a shard, so offsets are dense and assigned in queue order.
//   - mark <= next: readers never pass the committed mark; ring bytes beyond it are not visible.
//   - Offsets are never used twice under one name: a recreated stream starts above its predecessor.
//   - Bytes of the ring below chunk.visible are never written again, so any number of readers share them.
//   - A subscription's cursor moves only in Advance, after its bytes were handed over.
//   - Publish.Done is called exactly once for every publish, whatever happens.
//   - A replica (OpenReplica) has no sequencer: publishes go to its Proposer, and Apply, on one
//     goroutine, appends what the replicas agreed on. It fills the ring, and takes
//     subscriptions, only while it leads.
//
// # Files
//
//	stream.go, name.go    a stream and its shards        shard.go       a shard and its assembly
//	config.go, errors.go  what goes in and what is said  close.go       its end
//	log.go                what a shard and its log need of each other
//	place.go              where a shard is, as one broker of a cluster sees it
//
// Publishing:
//
//	publish.go    one batch and its result               queue.go       what waits, what is in flight
//	sequence.go   the sequencer                          claim.go       what one append takes
//	stage.go      batches to frames in the ring          commit.go      to readers and to publishers
//	producers.go  idempotent producers                   tail.go        the ring of encoded frames
//
//	replica.go            a shard of which others hold copies: its state, and its way to the proposer
//	apply.go              what the replicas agreed on, to the log and to readers
//
// Reading:
//
//	subscribe.go  start offsets, registration            subscription.go  the cursor
//	next.go       the loop that moves it                 piece.go       frames as this client reads them
//	page.go       pages of history                       watch.go       wake-ups and the slow poll
//	lag.go        the bound, and what lies beyond it     block.go       OnFull Block: publishers wait
//	end.go        why and where it is over               lead.go          readers come and go with leadership
package stream
