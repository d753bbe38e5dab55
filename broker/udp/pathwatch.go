package udp

import (
	"time"

	"github.com/quic-go/quic-go"
)

const (
	// PathWatchInterval is how often a PathWatch wants to look.
	PathWatchInterval = time.Second
	// pathPatience is how long a path may acknowledge nothing, if that is long for
	// its round trip.
	pathPatience  = 3 * time.Second
	patienceTrips = 8
	// unheard is more than a sender of nothing but acknowledgements sends before it
	// asks for one itself, and as much as two full packets.
	unheard = 2 * 1280
)

// PathWatch notices that a path no longer carries what a connection sends though
// the peer is heard: its MTU has shrunk below the size that the connection had
// found, or it has been cut in one direction. quic-go takes back neither a packet
// size nor, while it hears the peer, the connection: what is to be sent would wait
// for ever. A new connection finds the size anew.
//
// The zero value is ready. It is for one connection and one goroutine.
type PathWatch struct {
	began    bool
	rtt      [3]time.Duration // changes whenever something is acknowledged
	since    time.Time        // when it changed last
	sent     uint64           // bytes, by then
	received uint64           // packets, a while after that
	settled  bool             // received is set
}

// Dead looks at the connection's counters and says whether the path is lost. It is
// to be called about every PathWatchInterval.
func (w *PathWatch) Dead(now time.Time, s quic.ConnectionStats) bool {
	rtt := [3]time.Duration{s.LatestRTT, s.SmoothedRTT, s.MeanDeviation}
	if !w.began || rtt != w.rtt {
		*w = PathWatch{began: true, rtt: rtt, since: now, sent: s.BytesSent}
		return false
	}
	if !w.settled {
		// What the peer sends from here on would acknowledge what was sent before.
		w.settled, w.received = true, s.PacketsReceived
		return false
	}
	return now.Sub(w.since) >= max(pathPatience, patienceTrips*s.SmoothedRTT) &&
		s.BytesSent >= w.sent+unheard && s.PacketsReceived > w.received
}
