// Package broker is the assembly: it makes a running [Broker] of a [Config], from
// the catalog on disk to the QUIC listener, and takes it down in the right order.
//
// What it is not: it serves no frame and no HTTP request itself (server, admin),
// orders no records (stream) and writes none (seglog). Nothing of the broker
// imports it; the command line does.
//
// # What is on disk
//
//	<data>/lock                  held by the broker that uses the directory
//	<data>/catalog.json          which streams there are
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
// are closed, the engine's feeders waited for, and the logs closed and flushed. The
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
//	streams.go, served.go             the streams of the catalog, one stream as it is served
//	openstream.go, closeshards.go     shards of a stream, opened and closed
//	wal.go, journals.go               the write-ahead log, and the parts of it that are shards'
//	createstream.go, updatestream.go, removestream.go, sweep.go  changes, and data left over from them
//	health.go, problem.go, readiness.go  what is wrong with a shard, in words, and for /readyz
//	adminapi.go, source.go            the broker as package admin and as a scrape ask for it
//	loglimit.go                       a storm of one message does not hide the others
package broker
