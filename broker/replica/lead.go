package replica

import (
	"context"
	"errors"
	"sync"
	"time"

	"felix.dev/felix/broker/quorum"
	"felix.dev/felix/broker/stream"
)

// mailbox holds the newest word on who leads.
type mailbox struct {
	wake chan struct{} // capacity 1

	mu     sync.Mutex // guards what follows; a leaf
	now    quorum.Leadership
	number uint64             // of words
	cancel context.CancelFunc // ends what was begun on the word before; nil: nothing was
}

// OnLeader is for quorum.GroupConfig.OnLeader.
func (g *Group) OnLeader(l quorum.Leadership) {
	m := &g.leadership
	m.mu.Lock()
	m.now = l
	m.number++
	cancel := m.cancel
	m.mu.Unlock()
	if !l.Leading {
		g.pause()
	}
	if cancel != nil {
		cancel()
	}
	wake(m.wake)
}

// take gives the newest word and a context that ends with the next one, or is over if
// that has come.
func (m *mailbox) take(parent context.Context) (quorum.Leadership, context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cancel = cancel
	return m.now, ctx, cancel
}

// lead follows who leads: it begins to serve behind the barrier, and ends readers when
// another broker does.
func (g *Group) lead() {
	for {
		l, ctx, cancel := g.leadership.take(g.ctx)
		if l.Leading {
			g.begin(ctx)
		} else {
			g.end(ctx)
		}
		select {
		case <-g.leadership.wake:
			cancel()
		case <-g.ctx.Done():
			cancel()
			g.handOver()
			return
		}
	}
}

// begin serves once everything that earlier leaders have committed is applied. Without
// leadership there is nothing to wait for.
func (g *Group) begin(ctx context.Context) {
	for ctx.Err() == nil {
		err := g.Ready(ctx)
		if err == nil {
			g.serve(ctx)
			return
		}
		if errors.Is(err, quorum.ErrNotLeader) || errors.Is(err, quorum.ErrClosed) {
			return // the next word says so
		}
		if ctx.Err() == nil {
			g.cfg.Log.Warn("the leader cannot serve yet", "err", err)
		}
		sleep(ctx, 50*time.Millisecond)
	}
}

// serve lets publishers and readers in, unless another word has come.
func (g *Group) serve(ctx context.Context) {
	g.mu.Lock()
	// OnLeader pauses behind a new word, under the same lock: so either it finds what is
	// done here, or this finds the word.
	m := &g.leadership
	m.mu.Lock()
	still := ctx.Err() == nil && m.now.Leading
	m.mu.Unlock()
	if still {
		g.serving.Store(true)
		for _, s := range g.bySlot {
			s.lead()
		}
	}
	n := len(g.bySlot)
	g.mu.Unlock()
	if still {
		g.cfg.Log.Info("this broker leads the group", "shards", n)
		g.cfg.Changed()
	}
}

// pause takes no more publishes and readers at once, and keeps readers that are here.
func (g *Group) pause() {
	g.mu.Lock()
	was := g.serving.Swap(false)
	for _, s := range g.bySlot {
		s.Pause()
	}
	g.mu.Unlock()
	g.proposer.drop(notLeading(nil))
	if was {
		g.cfg.Log.Info("this broker leads the group no longer")
		g.cfg.Changed()
	}
}

// end waits until it is known who leads, for a while, and sends readers there.
func (g *Group) end(ctx context.Context) {
	if !g.hasReaders() {
		g.handOver()
		return
	}
	deadline := time.Now().Add(g.cfg.HandOver)
	for !g.elsewhere(g.State()) && time.Now().Before(deadline) {
		if !sleep(ctx, 10*time.Millisecond) {
			return // it may lead again
		}
	}
	g.handOver()
}

func (g *Group) hasReaders() bool {
	for _, s := range g.all() {
		if s.Info().Subscriptions > 0 {
			return true
		}
	}
	return false
}

// elsewhere says that another broker is known to lead.
func (g *Group) elsewhere(st quorum.State) bool { return st.LeaderKnown && !st.Leading }

// handOver ends the readers of all shards: with where to go if that is known.
func (g *Group) handOver() {
	reason, to := stream.EndDeposed, (*stream.Moved)(nil)
	if st := g.State(); g.elsewhere(st) {
		if to = g.cfg.Moved(st.Leader.Node, st.Term); to != nil {
			reason = stream.EndMoved
		}
	}
	for _, s := range g.all() { // nobody else begins to serve meanwhile
		s.Unlead(reason, to)
	}
}
