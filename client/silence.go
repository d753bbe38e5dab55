package client

import (
	"time"

	"github.com/quic-go/quic-go"
)

const (
	// silenceInterval is how often a silenceWatch looks.
	silenceInterval = 100 * time.Millisecond
	// ackTail is how long after a packet it may still be acknowledged. What is sent later wants an acknowledgement itself.
	ackTail = 50 * time.Millisecond
	// silenceTrips is what the timeout is at least, in round trips: a far broker is not a silent one.
	silenceTrips = 8
	// silenceProbes is how many packets have to stay unanswered.
	silenceProbes = 3
)

// silenceWatch notices that a broker answers nothing any more, not even with the acknowledgements of packets that QUIC itself
// owes: long before the idle timeout, as a live broker acknowledges within a round trip whatever else it is doing. It is
// for one connection and one goroutine; the zero value is ready.
type silenceWatch struct {
	received uint64    // packets
	heard    time.Time // when that changed last
	sent     uint64    // packets that want no acknowledgement, or whose acknowledgement may still be on its way
	asked    time.Time // when more than that was sent first; zero: it was not
}

// dead looks at the connection's counters.
func (w *silenceWatch) dead(now time.Time, s quic.ConnectionStats, timeout time.Duration) bool {
	switch {
	case w.heard.IsZero() || s.PacketsReceived != w.received:
		*w = silenceWatch{received: s.PacketsReceived, heard: now, sent: s.PacketsSent}
		return false
	case now.Sub(w.heard) < ackTail:
		w.sent = s.PacketsSent
		return false
	case w.asked.IsZero():
		if s.PacketsSent > w.sent {
			w.asked = now
		}
		return false
	}
	return now.Sub(w.asked) >= max(timeout, silenceTrips*s.SmoothedRTT) && s.PacketsSent >= w.sent+silenceProbes
}
