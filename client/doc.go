// Package client publishes to and subscribes from Felix brokers over QUIC.
//
// It is not a broker's part: it knows the wire protocol (package wire) and nothing else of a broker. It manages no
// streams; that is the admin API's.
//
// # Use
//
// [Dial] makes a [Client]. [Client.Publish] sends one record and waits; a [Publisher] sends many without waiting for
// each. [Client.Subscribe] makes a [Subscription], which is read with Next or NextBatch. Every call takes a context and
// ends with it; nothing waits for ever.
//
// # What it promises
//
//   - A subscription delivers each record of its shard once and in order, from its start on. What cannot be kept is
//     told: offsets that are missing in [Event].Gap, the end of the subscription by an error. It never drops a record
//     itself: a reader that stops holds up its own event stream and no other one, as the connection's receive window
//     has room for all of them (Config.MaxSubscriptionsPerConn); beyond that number another connection is opened.
//   - A subscription whose event stream ends (too slow, connection lost, shard moved) goes on at [Subscription.Position]
//     with growing, random waits, or returns an error that names the position.
//   - A publish that returns no error was stored as the stream's durability says. An error that matches
//     [ErrOutcomeUnknown] leaves that open; after any other error the record was not stored. One publish that fails
//     does not fail another.
//   - An idempotent publisher sends again after every trouble, and the broker stores each record once. Like one that sends at
//     least once, it goes on at another broker when its own dies or cannot serve, for Config.PublishTimeout.
//   - A broker that is dead is noticed within Config.SilenceTimeout while something is asked of it, if another one is known.
//   - Close waits for every goroutine that was started.
//
// # Goroutines
//
// A Client and a Publisher may be used from any number of goroutines. Next and NextBatch of one Subscription belong to
// one goroutine at a time; its other methods may be called from any. Hooks of SubscribeConfig run in the goroutine that
// calls Next and must not call it.
//
// A connection has one goroutine that accepts event streams, a publisher two for its stream (two for each shard if it
// is idempotent). A subscription has none: Next reads the QUIC stream itself, so that back-pressure reaches the broker
// and no wake-up is paid for a hand-over.
//
// # Locks
//
// sharedPublishers.mu is taken before Client.mu, and Publisher.mu before pool.mu; all others are leaves (docs/locks.md). No lock is held while the network
// or an application's function is waited for.
//
// # Files
//
//	client.go, config.go        Client, its configuration and its end
//	types.go, errors.go         what is exchanged with the application
//	pool.go, dial.go, conn.go   connections: which, how they are reached, what belongs to one
//	silence.go                  a broker that answers nothing any more
//	tls.go, token.go            whom to trust, and by what the client is trusted
//	control.go, requests.go     streams with one request; the questions a client can ask
//	match.go                    event streams find their subscriptions
//	framebuf.go                 frames out of a stream, in place
//	subscribe.go, attach.go     what is asked for; one event stream, with redirects
//	subscription.go, watch.go   Next and NextBatch, and how a context interrupts them
//	decode.go                   frames to events, and the check of their offsets
//	resume.go, retry.go         from one event stream to the next
//	publisher.go, pending.go    Publisher and what it returns
//	budget.go, expiry.go        bounds in bytes, records and time
//	batch.go, lane.go           records that share a frame; the queue of them
//	lanerun.go, lanestream.go   the goroutine that moves it, and the QUIC stream that it has at the time
//	answer.go, idempotent.go    what answers do
//	routes.go, shared.go        shards of keys; the publishers behind Client.Publish
package client
