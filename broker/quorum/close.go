package quorum

import (
	"context"
	"fmt"
	"time"
)

const (
	// farewell bounds how long closing waits for leadership to move and for proposals to be answered.
	farewell = 2 * time.Second
)

// Close gives leadership away and ends the replica; what is on disk stays. When ctx
// ends first the rest goes on by itself, as soon as the disk or the machine lets it,
// and the error says so; the group cannot be opened again before.
func (g *Group) Close(ctx context.Context) error {
	g.once.Do(func() { go g.end(ctx) }) // g.closed is how it is waited for
	select {
	case <-g.closed:
		return nil
	case <-ctx.Done():
	}
	select {
	case <-g.closed:
		return nil
	default:
		return fmt.Errorf("quorum: group %d still waits for its storage or its machine: %w", g.id, ctx.Err())
	}
}

func (g *Group) end(ctx context.Context) {
	defer close(g.closed)
	if g.State().Leading {
		leave, cancel := context.WithTimeout(ctx, farewell)
		if err := g.Transfer(leave, Server{}); err != nil {
			g.slg.Info("closing without giving leadership away", "err", err)
		}
		cancel()
	}
	close(g.closing)
	if i, ok := g.cfg.Machine.(Interrupter); ok {
		i.Interrupt()
	}
	// From here on nothing is written, applied or sent, so raft may be told anything.
	ending := g.raft.Shutdown()
	g.log.close()
	g.stable.end()
	g.asked.giveUp(time.Now())
	if err := ending.Error(); err != nil {
		g.slg.Warn("raft ended badly", "err", err)
	}
	g.runMu.Lock()
	close(g.ended)
	g.runMu.Unlock()
	g.running.Wait()
	if err := g.stable.store.Close(); err != nil {
		g.slg.Warn("state store did not close", "err", err)
	}
	g.n.mu.Lock()
	delete(g.n.groups, g.id)
	g.n.mu.Unlock()
}
