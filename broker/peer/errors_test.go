package peer

import (
	"slices"
	"testing"
)

func TestNames(t *testing.T) {
	for k, want := range map[Kind]string{KindRaft: "raft", KindForward: "forward", KindFetch: "fetch", KindCall: "call", 1: "kind 0x01"} {
		if got := k.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	var texts []string
	for r := RefusedHello; r <= RefusedClosing+1; r++ {
		texts = append(texts, r.String())
	}
	if slices.Sort(texts); len(slices.Compact(texts)) != int(RefusedClosing)+1 {
		t.Errorf("reasons share a text: %q", texts)
	}
}
