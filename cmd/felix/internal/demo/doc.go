// Package demo shows what Felix does, with a broker of its own in the same process and real QUIC between it and its
// clients.
//
// Hello is the first thing that somebody sees: a publisher and two readers that exchange records. SlowConsumer is
// the point of it all: three readers, one of which stalls, under each overflow policy. It checks every claim that
// it makes, and a claim that does not hold is an error.
//
// It is not a benchmark: what it reports of time is there to be compared within one run.
//
// Both functions own every goroutine that they start and wait for it, and may be called from any goroutine. A
// Result is a plain value.
package demo
