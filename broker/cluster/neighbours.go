package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"felix.dev/felix/broker/quorum"
)

// neighbours is what this broker has heard from the others, and the goroutines
// that ask them: one for each, so that one that hangs holds up nobody else.
type neighbours struct {
	c *Cluster

	mu      sync.Mutex
	heard   map[string]word // by node
	asked   map[string]*asker
	started bool
}

// word is the last that was heard of a broker.
type word struct {
	report report
	at     time.Time // zero: never
	failed string    // why the last question since then was not answered; empty: it was
}

// asker is the goroutine that asks one broker.
type asker struct {
	wake  kick
	stop  context.CancelFunc
	since time.Time
}

func newNeighbours(c *Cluster) *neighbours {
	return &neighbours{c: c, heard: make(map[string]word), asked: make(map[string]*asker)}
}

// start begins to ask those that the book knows.
func (n *neighbours) start() {
	n.mu.Lock()
	n.started = true
	n.mu.Unlock()
	n.follow()
}

// follow has one asker for every other broker that the book knows.
func (n *neighbours) follow() {
	nodes := n.c.cfg.Book.nodes()
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.started || n.c.ctx.Err() != nil {
		return
	}
	for node, a := range n.asked {
		if !slices.Contains(nodes, node) {
			a.stop()
			delete(n.asked, node)
			delete(n.heard, node)
		}
	}
	for _, node := range nodes {
		if node == n.c.cfg.Self.Node || n.asked[node] != nil {
			continue
		}
		ctx, cancel := context.WithCancel(n.c.ctx)
		a := &asker{wake: newKick(), stop: cancel, since: time.Now()}
		n.asked[node] = a
		n.c.wg.Go(func() {
			defer cancel()
			n.ask(ctx, node, a)
		})
	}
}

// push tells everybody now: something that others should know has changed here.
func (n *neighbours) push() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, a := range n.asked {
		a.wake.now()
	}
}

// ask exchanges reports with a broker: when there is something to tell, and from
// time to time. Who has just told by himself is not asked; who does not answer is
// asked a little more often, until he has been away for long.
func (n *neighbours) ask(ctx context.Context, node string, a *asker) {
	t := n.c.cfg.Timings
	failures := 0
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		pushed := false
		select {
		case <-ctx.Done():
			return
		case <-a.wake:
			pushed = true
		case <-timer.C:
		}
		if !pushed && failures == 0 && n.heardWithin(node, t.Exchange*3/4) {
			timer.Reset(jittered(t.Exchange))
			continue
		}
		call, cancel := context.WithTimeout(ctx, t.Call)
		var answer report
		err := n.c.cfg.Peer.Call(call, node, methodExchange, n.c.report(), &answer)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			failures = 0
			n.hear(&answer)
			timer.Reset(jittered(t.Exchange))
		default:
			failures++
			if errors.Is(incoming(err), ErrRemoved) {
				n.c.steward.doubts()
			}
			n.miss(node, err)
			timer.Reset(jittered(min(t.Retry*time.Duration(failures), t.Exchange)))
		}
	}
}

// onExchange is another broker's report; the answer is ours.
func (c *Cluster) onExchange(_ context.Context, from string, body json.RawMessage) (any, error) {
	var r report
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, refuse(CodeInvalid, "exchange: %v", err)
	}
	if r.Node != from {
		return nil, refuse(CodeInvalid, "exchange: %s reports as %s", from, r.Node)
	}
	if st := c.State(); st.WasRemoved(r.Node, r.Instance) {
		return nil, removedError(st, quorum.Server{Node: r.Node, Instance: r.Instance}) // B76: it may not know
	}
	c.around.hear(&r)
	return c.report(), nil
}

// hear takes a broker's report.
func (n *neighbours) hear(r *report) {
	c := n.c
	if r.Node == c.cfg.Self.Node || c.known.Load() && c.State().WasRemoved(r.Node, r.Instance) {
		return
	}
	told := maps.Clone(r.Heard)
	if told == nil {
		told = make(map[string]heardOf)
	}
	delete(told, c.cfg.Self.Node)
	told[r.Node] = heardOf{position{Instance: r.Instance, Peer: r.Peer}, r.Since}
	c.cfg.Book.hear(told)

	n.mu.Lock()
	before := n.heard[r.Node]
	if before.at.IsZero() || r.Since >= before.report.Since || r.Instance != before.report.Instance {
		n.heard[r.Node] = word{report: *r, at: time.Now()}
	}
	n.mu.Unlock()
	n.follow()
	c.learnLeaders()
	if before.at.IsZero() || before.failed != "" || before.report.Instance != r.Instance {
		c.cfg.Log.Info("heard from a broker", "broker", r.Node, "instance", r.Instance, "address", r.Peer)
		c.replicas.look()
		c.steward.wake.now()
	}
}

func (n *neighbours) miss(node string, err error) {
	n.mu.Lock()
	w := n.heard[node]
	first := w.failed == ""
	w.failed = err.Error()
	n.heard[node] = w
	n.mu.Unlock()
	if first {
		n.c.cfg.Log.Warn("a broker does not answer", "broker", node, "error", err)
		n.c.steward.wake.now()
	}
}

func (n *neighbours) heardWithin(node string, d time.Duration) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	w := n.heard[node]
	return w.failed == "" && !w.at.IsZero() && time.Since(w.at) < d
}

// up tells whether a server was heard of lately.
func (n *neighbours) up(s quorum.Server) bool {
	if s == n.c.cfg.Self {
		return true
	}
	n.mu.Lock()
	w := n.heard[s.Node]
	n.mu.Unlock()
	return w.failed == "" && w.report.Instance == s.Instance && time.Since(w.at) < 3*n.c.cfg.Timings.Exchange
}

// heardOrNew tells whether a server was heard of within the last d, or is known
// here for less long than that: nobody counts as down before he could have been
// heard.
func (n *neighbours) heardOrNew(s quorum.Server, d time.Duration) bool { // B89
	if s == n.c.cfg.Self {
		return true
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	last := n.heard[s.Node].at
	if a := n.asked[s.Node]; a == nil || a.since.After(last) {
		if a == nil {
			return true
		}
		last = a.since
	}
	return time.Since(last) < d
}

// answers tells whether a broker is not known to be silent.
func (n *neighbours) answers(node string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return node == n.c.cfg.Self.Node || n.heard[node].failed == ""
}

// words is the last of everybody.
func (n *neighbours) words() map[string]word {
	n.mu.Lock()
	defer n.mu.Unlock()
	return maps.Clone(n.heard)
}
