// Package placement decides where things are in a cluster: which brokers hold a
// quorum group and which of them should lead it, who owns a shard that is not
// replicated, and which group carries a Quorum shard.
//
// It is pure: a function of the catalog's state and of which brokers are believed
// to be down. It moves nothing and talks to nobody; package cluster does.
package placement
