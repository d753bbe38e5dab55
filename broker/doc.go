// Package broker is the assembly: it makes a running [Broker] of a [Config], from
// the catalog on disk to the QUIC listener, and takes it down in the right order.
//
// What it is not: it serves no frame and no HTTP request itself (server, admin),
// orders no records (stream) and writes none (seglog). Nothing of the broker
// imports it; the command line does.
//
// Alone it has a catalog in a file. As a member of a cluster it follows the catalog
// that all brokers have, and what it opens, closes, leads and deletes comes from there.
//
// # What is on disk
//
//	<data>/lock                  held by the broker that uses the directory
//	<data>/catalog.json          which streams there are, of a broker that is alone
//	<data>/wal/                  the write-ahead log of all shards and groups
//	<data>/instance              whose data this is: a broker that lost it is another one
//	<data>/cluster.json          which cluster it belongs to, and where the others were
//	<data>/raft/<group>/         terms, votes and snapshots of quorum groups
//	<data>/quic-reset.key        lets clients notice a restart at once
//	<data>/tls/                  a certificate that the broker made for itself
//	<data>/dev/                  key, token and context file of development mode
//	<data>/wal/                  what was acknowledged and is not in the logs yet, of all shards
//	<data>/streams/<tenant>/<namespace>/<stream>/<incarnation>/<shard>/   a shard's log
//
// # Invariants
//
//   - One broker at a time uses a data directory.
//   - A stream's directory is removed only after the catalog has buried the stream,
//     and only if a marker in it says that this was wanted: what the catalog does
//     not know otherwise is reported and left alone.
//   - A memory shard hands out no offset that the catalog has not reserved for it.
//   - A stream that cannot be served is refused with the reason; the others serve.
//   - What Start has begun when it fails is undone before it returns.
//
// # Shutdown
//
// Readiness goes first, so that nobody is sent here any more. Then the server
// drains: no new connections, streams, publishes or subscriptions, and every publish
// that was taken is answered. Then the shards close: their subscriptions get what is
// committed and are reset, which makes clients resume elsewhere. Then connections
// are closed, the engine's feeders waited for, and the logs closed and flushed. A
// member hands its leaderships over before its shards close, and answers the other
// brokers until its readers are gone. The
// admin server goes last but for the lock, so that the end can be watched.
//
// # Goroutines
//
// All methods of Broker may be called from any goroutine. The package's own are
// removals of deleted streams, the admin server, and who watches for failures;
// Shutdown waits for all of them.
//
// # Files
//
//	broker.go, start.go, shutdown.go  a broker, its beginning and its end
//	config.go, effective.go, serverconfig.go  what it is told, and what that comes to
//	datadir.go, lock_*.go             the data directory and the right to it
//	certificate.go, keys.go, dev.go   whom clients trust, whom it trusts, and both without setting anything up
//	directory.go, served.go           what this broker serves, by name; one stream as it is served
//	streams.go                        the streams of a broker that is alone
//	openstream.go, closeshards.go     shards of a stream, opened and closed
//	wal.go, journals.go               the write-ahead log, and the parts of it that are shards'
//	createstream.go, updatestream.go, removestream.go, sweep.go  changes, and data left over from them
//	wal.go, journals.go               the write-ahead log, and what durable shards have of it
//	clusterconfig.go, instance.go     what a member is told, and who it is
//	member.go, memberready.go, membermetrics.go  its part in the cluster, whether it has caught up, what is counted
//	groups.go, shardspec.go, replicalog.go  quorum groups as they are here, what they are told of shards, their logs
//	locations.go                      who serves which shard
//	clusterstreams.go, owned.go       streams that follow the cluster's catalog, shards that only this broker has
//	clusterduties.go                  what a leader or owner does because the catalog says so
//	clusterchange.go, moveshard.go,
//	handedover.go                     streams made, changed and deleted by all; a shard that comes here, or has gone
//	clusterapi.go                     the cluster as package admin asks for it
//	health.go, problem.go, readiness.go  what is wrong with a shard, in words, and for /readyz
//	adminapi.go, showshards.go, source.go  the broker as package admin and as a scrape ask for it
//	loglimit.go                       a storm of one message does not hide the others
package broker
