package wire

import "testing"

func TestCodes(t *testing.T) {
	want := map[Code]struct{ name, retry string }{ // section 12 of the protocol
		1: {"unauthenticated", "fatal"}, 2: {"forbidden", "fatal"}, 3: {"not_found", "retry_after"},
		4: {"invalid_request", "fatal"}, 5: {"shard_unavailable", "retry"}, 6: {"not_leader", "redirect"},
		7: {"quorum_timeout", "outcome_unknown"}, 8: {"leadership_lost", "outcome_unknown"},
		9: {"unacknowledged", "outcome_unknown"}, 10: {"overloaded", "retry_after"}, 11: {"limit_exceeded", "fatal"},
		12: {"draining", "retry"}, 13: {"internal", "outcome_unknown"}, 14: {"storage", "outcome_unknown"},
		15: {"stale_claim", "retry"},
	}
	for c, w := range want {
		if c.String() != w.name || c.DefaultRetry().String() != w.retry {
			t.Errorf("code %d is %s, %s; want %s, %s", uint16(c), c, c.DefaultRetry(), w.name, w.retry)
		}
		if got, ok := ParseCode(w.name); !ok || got != c {
			t.Errorf("ParseCode(%q) = %d, %v", w.name, got, ok)
		}
		if got := ParseRetry(w.retry); got != c.DefaultRetry() {
			t.Errorf("ParseRetry(%q) = %d", w.retry, got)
		}
	}
	for _, name := range []string{"", "revoked"} {
		if c, ok := ParseCode(name); ok {
			t.Errorf("ParseCode(%q) = %d", name, c)
		}
		if r := ParseRetry(name); r != RetryFatal {
			t.Errorf("ParseRetry(%q) = %v", name, r)
		}
	}
	for _, c := range []Code{0, 16, 65535} {
		if c.DefaultRetry() != RetryFatal {
			t.Errorf("code %d retries", c)
		}
	}
	if got := Code(99).String(); got != "code_99" {
		t.Errorf("unknown code is %q", got)
	}
	if got := Retry(0).String(); got != "fatal" {
		t.Errorf("no class is %q", got)
	}
}
