// Package quorum keeps quorum groups: logs that a majority of brokers agree on, each
// feeding a machine of its owner's. It wraps hashicorp/raft.
//
// It knows nothing of streams, shards or the catalog: what entries mean is their
// machine's matter. Who is a member is its owner's too: it makes the one change that
// it is told to make. It never moves data to take or install a snapshot: a snapshot
// is a manifest, and a machine that is given one fetches what it lacks by itself.
package quorum
