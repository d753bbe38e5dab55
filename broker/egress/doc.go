// Package egress takes subscriptions from their cursors to their QUIC streams.
//
// A [feeder] is a goroutine for each subscription that has something to send: it asks
// for the next piece, writes it in one blocking Write and moves the cursor. An idle
// subscription has none. quic-go's Write returns when all but one packet is sent, so
// each subscription has exactly one write in flight, a blocked stream holds up only
// itself, and the back-pressure is bounded. A [lane] owns the waking of a set of
// feeders: a commit tells each lane once, and the lane serves those that are parked: a
// small frame that came alone is written in their stead, otherwise they run again.
//
// What it is not: it decides nothing about lag, history or offsets (package stream),
// and it opens no streams and knows no sessions (package server).
//
// # Invariants
//
//   - A cursor moves only after its bytes were accepted by the QUIC stream.
//   - A frame that was cut by a deadline or an error is followed by nothing: the stream is reset.
//   - FIN means over, RESET means resume: only a notice (lagged, moved) or a deleted stream ends in FIN.
//   - What a feeder has of its own beyond 256 KiB is counted before it is allocated.
//   - Every feeder ends before Engine.Close returns.
//
// # Files
//
//	engine.go  settings, totals, and the start of a subscription
//	feeder.go  one subscription to one QUIC stream, to its end
//	park.go    feeders without a goroutine, and who serves them meanwhile
//	large.go   memory for large frames
//	lane.go    who wakes them: lanes, and a lane's group for each shard
package egress
