package replica

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"felix.dev/felix/broker/quorum"
	"felix.dev/felix/broker/seglog"
)

// open starts a node from what its disk and its newest manifest say.
func (k *node) open() {
	k.b.t.Helper()
	g, err := New(k.cfg)
	if err != nil {
		k.b.t.Fatal(err)
	}
	if err := g.Recover(k.manifest); err != nil {
		k.b.t.Fatal(err)
	}
	k.b.mu.Lock()
	k.g, k.fetches = g, NewFetches()
	k.fetches.Add(g)
	k.applied, k.stopped = k.manifestAt, false
	k.b.mu.Unlock()
	g.start(k)
	k.loop.Go(func() { k.run(g) })
}

// run applies entries as they come.
func (k *node) run(g *Group) {
	b := k.b
	for {
		b.mu.Lock()
		for !k.stopped && (k.paused || k.applied >= len(b.entries)) {
			b.cond.Wait()
		}
		if k.stopped {
			b.mu.Unlock()
			return
		}
		b.mu.Unlock()
		k.applying.Lock()
		b.mu.Lock()
		at := k.applied
		if at >= len(b.entries) { // a snapshot was installed meanwhile
			b.mu.Unlock()
			k.applying.Unlock()
			continue
		}
		e := b.entries[at]
		b.mu.Unlock()
		got := g.Apply(uint64(at+1), e.term, e.data)
		b.mu.Lock()
		if g.ctx.Err() == nil {
			k.applied = at + 1
		}
		k.applying.Unlock()
		if done := b.entries[at].done; e.by == k && done != nil {
			b.entries[at].done = nil
			done.result = got
			close(done.done)
		}
		b.cond.Broadcast()
		b.mu.Unlock()
	}
}

// stop ends a node as a crash of its process would, but for its goroutines.
func (k *node) stop() {
	k.b.t.Helper()
	k.b.mu.Lock()
	if k.stopped {
		k.b.mu.Unlock()
		return
	}
	k.stopped = true
	if i := k.b.leader; i >= 0 && k.b.nodes[i] == k {
		k.b.leader = -1
	}
	for i := range k.b.entries { // nobody hears of them any more
		if e := &k.b.entries[i]; e.by == k && e.done != nil {
			e.done.err = quorum.ErrOutcomeUnknown
			close(e.done.done)
			e.done = nil
		}
	}
	k.b.cond.Broadcast()
	k.b.mu.Unlock()
	k.g.Interrupt()
	k.loop.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	k.fetches.Remove(k.g)
	if err := k.g.Close(ctx); err != nil && !errors.Is(err, seglog.ErrPoisoned) && !errors.Is(err, fs.ErrInvalid) {
		k.b.t.Logf("close %s: %v", k.name, err)
	}
}

func (b *bed) close() {
	for _, k := range b.nodes {
		k.stop()
	}
	b.mu.Lock()
	b.over = true
	b.mu.Unlock()
	b.conns.Wait()
}

// lead makes a node the leader of a new term.
func (b *bed) lead(i int) *node {
	b.t.Helper()
	b.mu.Lock()
	old := b.leader
	b.term++
	b.leader = i
	term := b.term
	b.cond.Broadcast()
	b.mu.Unlock()
	if old >= 0 {
		b.nodes[old].g.OnLeader(quorum.Leadership{Term: term - 1})
	}
	k := b.nodes[i]
	k.g.OnLeader(quorum.Leadership{Leading: true, Term: term})
	b.until("the leader serves", k.g.Serving)
	return k
}

// Propose implements raft.
func (k *node) Propose(data []byte) proposal {
	b := k.b
	p := &fakeProposal{done: make(chan struct{})}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.leader < 0 || b.nodes[b.leader] != k || k.stopped {
		p.err = quorum.ErrNotLeader
		close(p.done)
		return p
	}
	b.entries = append(b.entries, logged{b.term, data, k, p})
	b.cond.Broadcast()
	return p
}

// State implements raft.
func (k *node) State() quorum.State {
	b := k.b
	b.mu.Lock()
	defer b.mu.Unlock()
	st := quorum.State{Term: b.term}
	if b.leader >= 0 {
		st.LeaderKnown, st.Leader = true, quorum.Server{Node: b.nodes[b.leader].name}
		st.Leading = b.nodes[b.leader] == k
	}
	return st
}

// Ready implements raft.
func (k *node) Ready(ctx context.Context) error {
	b := k.b
	stop := context.AfterFunc(ctx, b.cond.Broadcast)
	defer stop()
	b.mu.Lock()
	defer b.mu.Unlock()
	for n := len(b.entries); k.applied < n; {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if b.leader < 0 || b.nodes[b.leader] != k {
			return quorum.ErrNotLeader
		}
		b.cond.Wait()
	}
	return nil
}

// Transfer implements raft: the next node that runs leads.
func (k *node) Transfer(context.Context, quorum.Server) error {
	b := k.b
	b.mu.Lock()
	to := -1
	for i, other := range b.nodes {
		if other != k && !other.stopped && !other.paused {
			to = i
		}
	}
	if to < 0 || b.leader < 0 || b.nodes[b.leader] != k {
		b.mu.Unlock()
		return quorum.ErrNotVoter
	}
	b.term++
	b.leader = to
	term := b.term
	b.mu.Unlock()
	k.g.OnLeader(quorum.Leadership{Term: term - 1})
	b.nodes[to].g.OnLeader(quorum.Leadership{Leading: true, Term: term})
	return nil
}

// snapshot takes and persists one.
func (k *node) snapshot() {
	k.b.t.Helper()
	k.applying.Lock()
	k.b.mu.Lock()
	at := k.applied
	k.b.mu.Unlock()
	s, err := k.g.Snapshot()
	k.applying.Unlock()
	if err != nil {
		k.b.t.Fatal(err)
	}
	defer s.Release()
	m, err := s.Persist()
	if err != nil {
		k.b.t.Fatal(err)
	}
	k.manifest, k.manifestAt = m, at
}

// install has k catch up through the newest snapshot of another.
func (k *node) install(from *node) error {
	k.applying.Lock()
	defer k.applying.Unlock()
	err := k.g.Restore(uint64(from.manifestAt), from.manifest, quorum.Server{Node: from.name})
	if err == nil {
		k.b.mu.Lock()
		k.manifest, k.manifestAt, k.applied = from.manifest, from.manifestAt, from.manifestAt
		k.b.mu.Unlock()
	}
	return err
}

func (k *node) pause(on bool) {
	k.b.mu.Lock()
	k.paused = on
	k.b.cond.Broadcast()
	k.b.mu.Unlock()
}

// settle waits until the nodes have applied everything.
func (b *bed) settle(nodes ...*node) {
	b.t.Helper()
	if len(nodes) == 0 {
		nodes = b.nodes
	}
	b.until("all is applied", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, k := range nodes {
			if !k.stopped && k.applied < len(b.entries) {
				return false
			}
		}
		return true
	})
}

func (b *bed) until(what string, ok func() bool) {
	b.t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			b.t.Fatalf("waited for %s in vain", what)
		}
	}
}
