// Package metrics holds every metric of the data path, by name, in one place.
//
// What happens often is a counter that its owner updates: Sessions, Publish,
// Egress, Subscriptions, Log and Network group them by who that is. What is
// a state rather than an event (how many connections, how far behind is who) is
// not counted up and down but read from the owner at each scrape through a
// Source, so that a gauge cannot drift from what it stands for. So are counters that
// their owner keeps anyway.
//
// The package is not a registry and serves nothing: the registry is passed in.
// It does not measure; it is told.
//
// # Invariants
//
//   - Every label has a bounded set of values. Label values of counters are
//     closed sets, and a value outside falls under "other". At most MaxStreams
//     streams have series of their own, the others share the stream label
//     "(other)"; at most MaxSubscriptions subscriptions do, those that lag most.
//   - Counters never go down, also when a stream moves between its own series
//     and "(other)".
//   - Every metric is a line of docs/metrics.md and the other way round; a test
//     compares.
//
// # Goroutines
//
// The package starts none. Counters may be updated from anywhere. A scrape calls
// the Source on the goroutine that gathers, one scrape at a time.
package metrics
