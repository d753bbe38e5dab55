// Package demo shows what Felix does, with a broker of its own, or a cluster, and real QUIC between it and its clients.
//
// Hello is the first thing that somebody sees: a publisher and two readers that exchange records. SlowConsumer is
// the point of it all: three readers, one of which stalls, under each overflow policy. Failover kills the leader of
// a stream that a majority of brokers keeps, which are processes of their own there. Both check every claim that
// they make, and a claim that does not hold is an error.
//
// It is not a benchmark: what it reports of time is there to be compared within one run.
//
// The functions own every goroutine and every process that they start and wait for it, and may be called from any
// goroutine. A Result is a plain value.
package demo
