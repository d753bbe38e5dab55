package quorum

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestWrongInstance: a connection that is meant for a server that was there before is refused. // B87
func TestWrongInstance(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	a, b := c.hosts[0], c.hosts[1]
	was := b.self()
	was.Instance = "before"
	_, err := a.node.dialLane(was, laneControl)
	if err == nil || !strings.Contains(err.Error(), "not instance before") {
		t.Errorf("dialed an instance that is gone: %v", err)
	}
	if _, err := a.node.linkTo(was).lanes[laneData].ask(time.Second, frameAppend, 1, nil); err == nil {
		t.Error("asked an instance that is gone")
	}
}

// TestUnknownGroup: requests for a group that is not open are answered.
func TestUnknownGroup(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	l := c.hosts[0].node.linkTo(c.hosts[1].self())
	for _, kind := range []frameKind{frameAppend, frameVote, frameInstall, 'x'} {
		if _, err := l.lanes[laneData].ask(patience, kind, 77, []byte("anything")); err == nil || errors.Is(err, errTimeout) {
			t.Errorf("request %c: %v", kind, err)
		}
	}
	if a := l.beats.send(77, 1, always{}, nil); !errors.Is(a.err, errAbsent) {
		t.Errorf("heartbeat: %+v", a)
	}
	// What does not parse is refused too, and the connection goes on.
	for _, kind := range []frameKind{frameAppend, frameVote, frameInstall, 'x'} {
		if _, err := l.lanes[laneControl].ask(patience, kind, 1, []byte{0xff}); err == nil || errors.Is(err, errTimeout) {
			t.Errorf("malformed request %c: %v", kind, err)
		}
	}
	c.put("after")
}

// TestStrandedConnections: those that died without a word are given up, and what was
// dialed before is forgotten. // B80
func TestStrandedConnections(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, calm)
	leader := c.put("before")
	c.settled()
	for i, h := range c.others(leader) {
		c.nw.Strand(leader.name, h.name)
		c.put(fmt.Sprint("after ", i))
		c.settled()
	}
	leader = c.leader()
	until(t, "connections to be forgotten", func() bool {
		leader.node.mu.Lock()
		defer leader.node.mu.Unlock()
		return len(leader.node.conns) <= 2*2*int(lanes)
	})
}

// TestHeartbeatsShareFrames: those of many groups go together, and no more often than they must.
func TestHeartbeatsShareFrames(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	l := c.hosts[0].node.linkTo(c.hosts[1].self())
	lane := &l.lanes[laneControl]
	if _, err := lane.ask(patience, frameVote, 77); err == nil { // connects
		t.Fatal("a group that is not there answered")
	}
	lane.mu.Lock()
	before := lane.lastID
	lane.mu.Unlock()
	began := time.Now()
	const rounds, groups = 5, 50
	for range rounds {
		done := make(chan beatAnswer, groups)
		for g := range uint32(groups) {
			go func() { done <- l.beats.send(1000+g, 1, always{}, nil) }()
		}
		for range groups {
			if a := <-done; !errors.Is(a.err, errAbsent) {
				t.Fatalf("heartbeat: %+v", a)
			}
		}
	}
	took := time.Since(began)
	lane.mu.Lock()
	frames := lane.lastID - before
	lane.mu.Unlock()
	// Goroutines that come late take the next frame; other groups' own frames are few.
	if most := uint64(took/fast.pace()) + 6; frames > most || frames < rounds {
		t.Errorf("%d rounds of %d heartbeats took %d frames in %v, at most %d were to be", rounds, groups, frames, took, most)
	}
}

type always struct{}

func (always) leads(uint64) bool { return true }

func TestTarget(t *testing.T) {
	a, b := Server{Node: "n.1", Instance: "ia"}, Server{Node: "n2", Instance: "ib"}
	kind, to, from, err := parseTarget(target(laneData, b, a))
	if kind != laneData || to != "ib" || from != "ia" || err != nil {
		t.Errorf("parsed %d, %q, %q, %v", kind, to, from, err)
	}
	for _, bad := range []string{"", "1", "2 0 a b", "1 7 a b", "1 -1 a b", "1 0 a b.c", "x y z"} {
		if _, _, _, err := parseTarget(bad); err == nil {
			t.Errorf("target %q is accepted", bad)
		}
	}
}

func TestServer(t *testing.T) {
	s := Server{Node: "n.1", Instance: "ia"}
	if got, err := ParseServer(s.String()); got != s || err != nil || s.Validate() != nil {
		t.Errorf("parsed %+v, %v", got, err)
	}
	for _, bad := range []string{"", "n1", ".i", "n."} {
		if _, err := ParseServer(bad); err == nil {
			t.Errorf("server %q is accepted", bad)
		}
	}
	for _, bad := range []Server{{}, {Node: "a"}, {Node: "a", Instance: "b.c"}, {Node: strings.Repeat("n", 300), Instance: "i"}} {
		if bad.Validate() == nil {
			t.Errorf("server %v is valid", bad)
		}
	}
}
