package wire

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// What an ack of one status cannot carry is never sent: the peer would fail the
// whole stream.
func TestAppendAckLeavesOutTheImpossible(t *testing.T) {
	tests := map[string]struct{ in, want Ack }{
		"offset of a failure": {
			in:   Ack{RequestID: 1, Message: "no", HasOffset: true, Offset: 9},
			want: Ack{RequestID: 1, Message: "no"},
		},
		"code of a success": {
			in:   Ack{OK: true, RequestID: 1, HasCode: true, Code: CodeInternal, Retry: RetryNow, HasDetail: true, Reason: "r"},
			want: Ack{OK: true, RequestID: 1},
		},
		"detail without code": {
			in:   Ack{RequestID: 1, HasDetail: true, Reason: "r", RetryAfterMS: 5},
			want: Ack{RequestID: 1},
		},
		"failure of a forwarded publish": {
			in:   Ack{RequestID: 1, HasCode: true, Code: CodeDraining, Retry: RetryNow, HasOwner: true, OwnerNode: "b2", Generation: 3},
			want: Ack{RequestID: 1, HasCode: true, Code: CodeDraining, Retry: RetryNow, HasOwner: true, OwnerNode: "b2", Generation: 3},
		},
		"text that is not UTF-8": {
			in:   Ack{RequestID: 1, Message: "a\xffb"},
			want: Ack{RequestID: 1, Message: "a\uFFFDb"},
		},
		"unknown code, no class": {
			in:   Ack{RequestID: 1, HasCode: true, Code: 99, Retry: 77},
			want: Ack{RequestID: 1, HasCode: true, Code: 99, Retry: RetryFatal},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			h, payload := splitFrame(t, AppendAck(nil, &tt.in))
			got, err := DecodeAck(h.Flags, payload)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestAckTextIsCutAtARune(t *testing.T) {
	a := Ack{RequestID: 1, Message: strings.Repeat("é", 40000), HasCode: true, HasDetail: true, Reason: strings.Repeat("x", 70000)}
	h, payload := splitFrame(t, AppendAck(nil, &a))
	got, err := DecodeAck(h.Flags, payload)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Message) != 65534 || !utf8.ValidString(got.Message) || len(got.Reason) != 65535 {
		t.Errorf("message of %d bytes, reason of %d", len(got.Message), len(got.Reason))
	}
}

func BenchmarkAppendAck(b *testing.B) {
	b.ReportAllocs()
	a := Ack{OK: true, RequestID: 1, HasOffset: true, Offset: 42}
	buf := make([]byte, 0, 64)
	for b.Loop() {
		buf = AppendAck(buf[:0], &a)
	}
}
