package udp

import (
	"testing"
	"time"

	"github.com/quic-go/quic-go"
)

// TestB62PathWatch holds the verdict on counters as they were seen on real paths.
func TestB62PathWatch(t *testing.T) {
	type look struct {
		sent, received uint64
		rtt            time.Duration
	}
	const srtt = 100 * time.Microsecond
	for _, tt := range []struct {
		name string
		srtt time.Duration
		each []look // one a second
		dead int    // the look that finds it dead, -1: none
	}{
		{"idle", srtt, []look{{1000, 10, 1}, {1000, 10, 1}, {1000, 10, 1}, {1000, 10, 1}, {1000, 10, 1}, {1000, 10, 1}}, -1},
		{"idle with pings of the peer", srtt, []look{{1000, 10, 1}, {1026, 11, 1}, {1052, 12, 1}, {1078, 13, 1}, {1104, 14, 1}}, -1},
		{"acknowledges only", srtt, []look{{1000, 10, 1}, {1500, 30, 1}, {2000, 50, 1}, {2500, 70, 1}, {3000, 90, 1}}, -1},
		{"everything arrives", srtt, []look{{1e6, 10, 1}, {2e6, 20, 2}, {3e6, 30, 3}, {4e6, 40, 4}, {5e6, 50, 5}}, -1},
		{"large datagrams do not arrive", srtt, []look{{94_016, 50, 1}, {98_000, 51, 1}, {99_000, 51, 1}, {99_000, 52, 1}, {99_029, 53, 1}}, 3},
		{"neither does the peer", srtt, []look{{94_016, 50, 1}, {98_000, 51, 1}, {99_000, 51, 1}, {99_000, 51, 1}, {99_000, 51, 1}}, -1},
		{"a slow path has more time", 600 * time.Millisecond, []look{{0, 50, 1}, {9_000, 51, 1}, {9_000, 52, 1}, {9_000, 53, 1}, {9_000, 54, 1}, {9_000, 55, 1}}, 5},
		{"an acknowledgement begins anew", srtt, []look{{0, 50, 1}, {9_000, 51, 1}, {9_000, 52, 1}, {18_000, 53, 2}, {18_000, 54, 2}, {18_000, 55, 2}}, -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var w PathWatch
			now := time.Unix(0, 0)
			dead := -1
			for i, l := range tt.each {
				s := quic.ConnectionStats{BytesSent: l.sent, PacketsReceived: l.received, LatestRTT: l.rtt, SmoothedRTT: tt.srtt}
				if w.Dead(now, s) && dead < 0 {
					dead = i
				}
				now = now.Add(PathWatchInterval)
			}
			if dead != tt.dead {
				t.Errorf("found dead at look %d, want %d", dead, tt.dead)
			}
		})
	}
}
