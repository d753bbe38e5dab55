// Package replica keeps shards the same on several brokers: it is the state machine
// of a quorum group, and what proposes to it.
//
// It is not a consensus protocol (package quorum has that) and knows nothing of
// clients or of catalogs: it is told which shards there are, and their settings are
// bytes to it that the assembly reads.
//
// # Files
//
//	skeleton.go  what is to come
package replica
