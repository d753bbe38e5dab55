package peer

import "fmt"

// Kind is what a connection is for. It is part of the hello: a kind keeps its letter.
type Kind byte

// The kinds of connections.
const (
	KindRaft    Kind = 'R' // one quorum group's messages
	KindForward Kind = 'F' // publishes on their way to the owner of a shard
	KindFetch   Kind = 'P' // records that a follower lacks
	KindCall    Kind = 'C' // requests with an answer; the transport's own
)

func (k Kind) String() string {
	switch k {
	case KindRaft:
		return "raft"
	case KindForward:
		return "forward"
	case KindFetch:
		return "fetch"
	case KindCall:
		return "call"
	}
	return fmt.Sprintf("kind 0x%02x", byte(k))
}
