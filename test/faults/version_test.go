package faults_test

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// floors are the oldest versions of the modules that read the network which no advisory
// known to us is about. `govulncheck` knows more; this holds without a network.
var floors = map[string]string{
	// v0.57.0: expansion of HTTP/3 header fields; v0.54.1: panic on an unfinished
	// handshake; v0.48.2 and before: floods of control frames (B71).
	"github.com/quic-go/quic-go":     "v0.57.0",
	"golang.org/x/net":               "v0.45.0",
	"golang.org/x/crypto":            "v0.45.0",
	"github.com/golang-jwt/jwt/v5":   "v5.2.2",
	"google.golang.org/protobuf":     "v1.33.0",
	"github.com/prometheus/common":   "v0.44.0",
	"github.com/cespare/xxhash/v2":   "v2.0.0",
	"github.com/cenkalti/backoff/v5": "v5.0.0",
}

// TestPinnedVersions is B71: what speaks to strangers is pinned at a version that is
// not known to be vulnerable.
func TestPinnedVersions(t *testing.T) {
	b, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	pinned := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^(?:require )?\s*(\S+) (v\S+)`).FindAllStringSubmatch(string(b), -1) {
		pinned[m[1]] = m[2]
	}
	for module, floor := range floors {
		have, ok := pinned[module]
		if !ok && module != "github.com/quic-go/quic-go" {
			continue // it is not used any more
		}
		if older(have, floor) {
			t.Errorf("%s is pinned at %q, below %s", module, have, floor)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^(?:replace )?\s*(\S+)(?: v\S+)? => `).FindAllStringSubmatch(string(b), -1) {
		if _, held := floors[m[1]]; held {
			t.Errorf("go.mod replaces %s, so that its version says nothing", m[1])
		}
	}
}

// older compares versions without pre-releases.
func older(a, b string) bool {
	x, y := numbers(a), numbers(b)
	for i := range x {
		if x[i] != y[i] {
			return x[i] < y[i]
		}
	}
	return false
}

func numbers(v string) (n [3]int) {
	v, _, _ = strings.Cut(strings.TrimPrefix(v, "v"), "-")
	for i, part := range strings.SplitN(v, ".", 3) {
		n[i], _ = strconv.Atoi(part) // what is no number is older than all
	}
	return n
}
