package client

import (
	"testing"
	"time"

	"github.com/quic-go/quic-go"
)

func TestSilenceWatch(t *testing.T) {
	// look is the counters at a time.
	type look struct {
		ms             int64
		sent, received uint64
		rttMS          int64
	}
	const timeout = 1500 * time.Millisecond
	tests := []struct {
		name  string
		looks []look
		want  bool // at the last one; false before it
	}{
		{"nothing is sent", []look{{0, 10, 10, 1}, {200, 10, 10, 1}, {2000, 10, 10, 1}, {9000, 10, 10, 1}}, false},
		{"everything is answered", []look{{0, 10, 10, 1}, {200, 20, 20, 1}, {2000, 30, 30, 1}, {9000, 40, 40, 1}}, false},
		{"nothing is answered", []look{{0, 10, 10, 1}, {200, 11, 10, 1}, {1000, 13, 10, 1}, {1600, 14, 10, 1}, {1700, 14, 10, 1}}, true},
		{"only the last acknowledgements are sent", []look{{0, 10, 10, 1}, {30, 20, 10, 1}, {200, 20, 10, 1}, {2000, 20, 10, 1}, {9000, 20, 10, 1}}, false},
		{"a keep-alive a moment ago", []look{{0, 10, 10, 1}, {200, 10, 10, 1}, {1400, 11, 10, 1}, {1600, 13, 10, 1}, {2800, 14, 10, 1}}, false},
		{"a keep-alive and its repeats", []look{{0, 10, 10, 1}, {200, 10, 10, 1}, {1400, 11, 10, 1}, {1600, 13, 10, 1}, {2900, 14, 10, 1}}, true},
		{"one packet alone may be lost", []look{{0, 10, 10, 1}, {200, 11, 10, 1}, {5000, 11, 10, 1}}, false},
		{"it comes back", []look{{0, 10, 10, 1}, {200, 11, 10, 1}, {1600, 14, 10, 1}, {1700, 15, 11, 1}, {3300, 18, 11, 1}}, false},
		{"a far broker", []look{{0, 10, 10, 300}, {200, 11, 10, 300}, {2500, 14, 10, 300}}, false},
		{"a far broker that is dead", []look{{0, 10, 10, 300}, {200, 11, 10, 300}, {2700, 14, 10, 300}}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var w silenceWatch
			begin := time.Unix(1000, 0)
			for i, l := range tt.looks {
				got := w.dead(begin.Add(time.Duration(l.ms)*time.Millisecond), quic.ConnectionStats{
					PacketsSent: l.sent, PacketsReceived: l.received, SmoothedRTT: time.Duration(l.rttMS) * time.Millisecond,
				}, timeout)
				if want := tt.want && i == len(tt.looks)-1; got != want {
					t.Errorf("at %d ms: got %v, want %v", l.ms, got, want)
				}
			}
		})
	}
}
