// Package route takes publishes to the broker that serves their shard. A client may
// publish to any broker of a cluster and is never redirected, so that this is what makes
// a cluster out of brokers as far as publishers can tell.
//
// A [Forwarder] has a [Place] for each shard, which hands a batch to the shard if it is
// here, sends it to its owner over a connection of package peer if not, and holds it for
// a while if nobody is known. A [Receiver] is the other end of such connections. Who
// serves what is the assembly's to say: a [Table].
//
// What it is not: it decides nothing about who serves a shard, and knows no catalog, no
// group and no client. Subscriptions are redirected by package server.
//
// # Files
//
//	table.go      who serves what              place.go     one shard, as this broker sees it
//	forwarder.go  all of them                  receiver.go  publishes from other brokers
package route
