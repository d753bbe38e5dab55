package auth

import (
	"strings"
	"testing"
	"time"
)

func TestPatternMatch(t *testing.T) {
	for _, tc := range []struct {
		pattern, resource string
		want              bool
	}{
		{"stream:t1/default/orders", "stream:t1/default/orders", true},
		{"stream:t1/default/orders", "stream:t1/default/orders2", false},
		{"stream:t1/default/orders", "stream:T1/default/orders", false},
		{"stream:t1/default/*", "stream:t1/default/orders", true},
		{"stream:t1/default/*", "stream:t1/default/", true},
		{"stream:t1/default/*", "stream:t1/other/orders", false},
		{"stream:t1/*", "stream:t1/default/orders", true},
		{"*", "stream:t1/default/orders", true},
		{"*", "", true},
		{"**", "x", true},
		{"stream:t1/*/orders", "stream:t1/a/b/orders", true},
		{"stream:t1/*/orders", "stream:t1/orders", false},
		{"stream:t1/*/o*s", "stream:t1/default/orders", true},
		{"stream:t1/*/o*x*s", "stream:t1/default/orders", false},
		{"a*a", "a", false},
		{"a*a", "aa", true},
		{"a*b*c", "abbbc", true},
		{"a*b*c", "ac", false},
		{"*ab*ab*", "aab", false},
		{"*ab*ab*", "abab", true},
		{"*é*", "stream:t/n/é", true},
	} {
		if got := compilePattern(tc.pattern).match(tc.resource); got != tc.want {
			t.Errorf("%q on %q: got %v, want %v", tc.pattern, tc.resource, got, tc.want)
		}
	}
}

// matchSlow is the definition: a star takes any run of bytes.
func matchSlow(p, s string) bool {
	if p == "" {
		return s == ""
	}
	if p[0] == '*' {
		for i := range len(s) + 1 {
			if matchSlow(p[1:], s[i:]) {
				return true
			}
		}
		return false
	}
	return s != "" && s[0] == p[0] && matchSlow(p[1:], s[1:])
}

func TestPatternMatchAgainstDefinition(t *testing.T) {
	var gen func(alphabet string, n int, f func(string))
	gen = func(alphabet string, n int, f func(string)) {
		f("")
		if n == 0 {
			return
		}
		for _, c := range alphabet {
			gen(alphabet, n-1, func(s string) { f(string(c) + s) })
		}
	}
	var subjects []string
	gen("ab", 5, func(s string) { subjects = append(subjects, s) })
	gen("ab*", 4, func(p string) {
		c := compilePattern(p)
		for _, s := range subjects {
			if got, want := c.match(s), matchSlow(p, s); got != want {
				t.Fatalf("%q on %q: got %v, want %v", p, s, got, want)
			}
		}
	})
}

func TestPatternMatchIsLinear(t *testing.T) {
	p := compilePattern(strings.Repeat("*a", 10_000) + "*b")
	s := strings.Repeat("a", 60_000)
	start := time.Now()
	if p.match(s) {
		t.Fatal("matched")
	}
	if d := time.Since(start); d > time.Second {
		t.Fatalf("took %v", d)
	}
}

func TestAllows(t *testing.T) {
	const orders = "stream:t1/default/orders"
	const group = "group:t1/default/orders/workers"
	for _, tc := range []struct {
		name     string
		perms    []string
		action   Action
		resource string
		want     bool
	}{
		{"granted", []string{"stream.publish:stream:t1/default/*"}, StreamPublish, orders, true},
		{"no grant", nil, StreamPublish, orders, false},
		{"other action", []string{"stream.publish:stream:t1/default/*"}, StreamSubscribe, orders, false},
		{"second grant", []string{"stream.publish:stream:x/*", "stream.publish:" + orders}, StreamPublish, orders, true},
		{"unknown action is ignored", []string{"stream.fly:*", "stream.publish:" + orders}, StreamPublish, orders, true},
		{"unknown action grants nothing", []string{"stream.fly:*"}, "stream.fly", orders, false},
		{"star is no action", []string{"*:*"}, StreamPublish, orders, false},
		{"no colon", []string{"stream.publish"}, StreamPublish, orders, false},
		{"empty resource", []string{"stream.publish:"}, StreamPublish, "", false},
		{"split at the first colon", []string{"stream.publish:stream:t1/default/orders"}, StreamPublish, "t1/default/orders", false},
		{"subscribe implies consume", []string{"stream.subscribe:" + orders}, GroupConsume, orders, true},
		{"subscribe implies consume of a group", []string{"stream.subscribe:" + orders}, GroupConsume, group, true},
		{"consume on the stream covers its groups", []string{"group.consume:" + orders}, GroupConsume, group, true},
		{"consume on one group", []string{"group.consume:" + group}, GroupConsume, group, true},
		{"consume on one group is not the stream", []string{"group.consume:" + group}, GroupConsume, orders, false},
		{"consume does not imply subscribe", []string{"group.consume:" + orders}, StreamSubscribe, orders, false},
		{"manage implies group manage", []string{"stream.manage:stream:t1/*"}, GroupManage, group, true},
		{"manage implies neither publish", []string{"stream.manage:*"}, StreamPublish, orders, false},
		{"nor group consume", []string{"stream.manage:*"}, GroupConsume, group, false},
		{"group name too short", []string{"stream.subscribe:" + orders}, GroupConsume, "group:t1/default/orders", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := NewPrincipal("alice", "t1", tc.perms)
			if got := p.Allows(tc.action, tc.resource); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestAllowsStreamChecksTenant(t *testing.T) {
	p := NewPrincipal("alice", "t1", []string{"stream.publish:*"})
	if !p.AllowsStream(StreamPublish, "t1", "default", "orders") {
		t.Error("own tenant refused")
	}
	if p.AllowsStream(StreamPublish, "t2", "default", "orders") {
		t.Error("other tenant allowed")
	}
	var nobody *Principal
	if nobody.Allows(StreamPublish, "x") || nobody.AllowsStream(StreamPublish, "t1", "a", "b") {
		t.Error("nil principal allowed")
	}
}

func TestAllowsDoesNotAllocate(t *testing.T) {
	p := NewPrincipal("alice", "t1", []string{"stream.publish:stream:t1/*/o*s", "stream.publish:stream:t2/*"})
	resource := StreamResource("t1", "default", "orders")
	if n := testing.AllocsPerRun(100, func() { p.Allows(StreamPublish, resource) }); n != 0 {
		t.Errorf("got %v allocations, want 0", n)
	}
}

func TestCheckPermission(t *testing.T) {
	if err := CheckPermission("stream.publish:stream:t1/default/*"); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", "stream.publish", "stream.fly:x", "stream.publish:", "*:*"} {
		if CheckPermission(bad) == nil {
			t.Errorf("%q accepted", bad)
		}
	}
}
