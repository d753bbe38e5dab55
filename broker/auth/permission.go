package auth

import (
	"fmt"
	"slices"
	"strings"
)

// Action is what a permission allows. An action outside the list below grants
// nothing and is never granted.
type Action string

// Actions that a broker knows.
const (
	StreamPublish   Action = "stream.publish"
	StreamSubscribe Action = "stream.subscribe" // implies group.consume
	StreamManage    Action = "stream.manage"    // implies group.manage
	CacheRead       Action = "cache.read"
	CacheWrite      Action = "cache.write"
	CacheManage     Action = "cache.manage"
	GroupConsume    Action = "group.consume"
	GroupManage     Action = "group.manage"
	NamespaceManage Action = "ns.manage"
	TenantManage    Action = "tenant.manage"
)

// implied names, for an action, the other action that grants it on the same
// stream.
var implied = map[Action]Action{
	GroupConsume: StreamSubscribe,
	GroupManage:  StreamManage,
}

func known(a Action) bool {
	switch a {
	case StreamPublish, StreamSubscribe, StreamManage, CacheRead, CacheWrite, CacheManage,
		GroupConsume, GroupManage, NamespaceManage, TenantManage:
		return true
	}
	return false
}

// StreamResource names a stream the way permissions do.
func StreamResource(tenant, namespace, stream string) string {
	return "stream:" + tenant + "/" + namespace + "/" + stream
}

// CheckPermission says what is wrong with a permission string that somebody is
// about to put into a token. Verification ignores such entries instead.
func CheckPermission(s string) error {
	action, resource, ok := strings.Cut(s, ":")
	switch {
	case !ok:
		return fmt.Errorf("permission %q: want action:resource", s)
	case !known(Action(action)):
		return fmt.Errorf("permission %q: unknown action %q", s, action)
	case resource == "":
		return fmt.Errorf("permission %q: empty resource", s)
	}
	return nil
}

// grants are the compiled permissions of a principal; immutable once built.
type grants map[Action][]pattern

func compile(perms []string) grants {
	g := make(grants)
	seen := make(map[string]struct{}, len(perms))
	for _, p := range perms {
		if _, dup := seen[p]; dup || CheckPermission(p) != nil {
			continue
		}
		seen[p] = struct{}{}
		action, resource, _ := strings.Cut(p, ":")
		g[Action(action)] = append(g[Action(action)], compilePattern(resource))
	}
	return g
}

// allows answers for one action and one resource, implications included.
func (g grants) allows(action Action, resource string) bool {
	if g.matches(action, resource) {
		return true
	}
	via, ok := implied[action]
	if !ok {
		return false
	}
	if g.matches(via, resource) {
		return true
	}
	// A consumer group belongs to a stream: what is granted on the stream holds
	// for each of its groups.
	stream, ok := streamOfGroup(resource)
	return ok && (g.matches(action, stream) || g.matches(via, stream))
}

func (g grants) matches(action Action, resource string) bool {
	return slices.ContainsFunc(g[action], func(p pattern) bool { return p.match(resource) })
}

// streamOfGroup turns group:tenant/namespace/stream/group into the name of the
// group's stream.
func streamOfGroup(resource string) (string, bool) {
	rest, ok := strings.CutPrefix(resource, "group:")
	if !ok {
		return "", false
	}
	parts := strings.SplitN(rest, "/", 4)
	if len(parts) < 4 {
		return "", false
	}
	return StreamResource(parts[0], parts[1], parts[2]), true
}

// pattern is a resource pattern cut at its stars: the resource must begin with
// the first piece, end with the last, and hold the others in between in order.
// Taking the leftmost place for each middle piece is enough, because a star
// takes anything: there is no backtracking to do.
type pattern struct {
	first, last string
	middle      []string
	exact       bool // no star: first is the whole resource
}

func compilePattern(s string) pattern {
	pieces := strings.Split(s, "*")
	if len(pieces) == 1 {
		return pattern{first: s, exact: true}
	}
	p := pattern{first: pieces[0], last: pieces[len(pieces)-1]}
	for _, m := range pieces[1 : len(pieces)-1] {
		if m != "" { // two stars in a row are one
			p.middle = append(p.middle, m)
		}
	}
	return p
}

func (p pattern) match(s string) bool {
	if p.exact {
		return s == p.first
	}
	if len(s) < len(p.first)+len(p.last) || !strings.HasPrefix(s, p.first) || !strings.HasSuffix(s, p.last) {
		return false
	}
	s = s[len(p.first) : len(s)-len(p.last)]
	for _, m := range p.middle {
		_, after, ok := strings.Cut(s, m)
		if !ok {
			return false
		}
		s = after
	}
	return true
}
