// Package placement decides where things are in a cluster: which brokers hold a
// quorum group and which of them should lead it, who owns a shard that is not
// replicated, and which group carries a Quorum shard.
//
// It is pure: a function of the catalog's state and of which brokers are believed
// to be down. It moves nothing and talks to nobody; package cluster does.
//
// # Invariants
//
//   - No two replicas of a group are on one broker, and they are spread over zones
//     as evenly as the brokers allow.
//   - A draining broker gets nothing, and holds nothing while another one is there.
//   - What is well placed stays. A broker that is down keeps what it holds.
//   - The same view gives the same plan, and planning again once a plan is in the
//     state changes nothing.
//
// Replicas and leaders are balanced by moving one along a path from a broker with
// many to one with at least two less: each step makes the whole more even, so it
// ends, and nothing is moved that does not make it so.
//
// # Goroutines
//
// None, and no locks.
//
// # Files
//
//	plan.go      what has to change, of all
//	groups.go    which brokers hold a group
//	set.go       the replicas of one group, and their spread over zones
//	balance.go   paths from who has much to who has little
//	leaders.go   who should lead
//	owners.go    who owns a shard that is not replicated
//	choose.go    where new shards go
//	brokers.go   the brokers that may take something
package placement
