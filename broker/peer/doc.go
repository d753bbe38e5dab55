// Package peer carries what brokers of a cluster say to each other.
package peer
