package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"felix.dev/felix/client"
	"felix.dev/felix/cmd/felix/internal/devcluster"
)

// leader finds the broker that leads the stream, asking until somebody knows.
func (f *failover) leader(ctx context.Context) (*devcluster.Broker, error) {
	ctx, cancel := context.WithTimeout(ctx, settleWithin)
	defer cancel()
	for {
		owner, err := f.owner(ctx)
		if b := f.cluster.Broker(owner.NodeID); err == nil && b != nil && b.Running() {
			return b, nil
		}
		if pause(ctx, 20*time.Millisecond) != nil {
			return nil, errors.Join(errors.New("nobody knows who leads the stream"), err)
		}
	}
}

// owner asks the brokers in turn.
func (f *failover) owner(ctx context.Context) (client.ShardOwner, error) {
	var errs []error
	for i, c := range f.clients {
		if !f.cluster.Brokers[i].Running() {
			continue
		}
		asking, cancel := context.WithTimeout(ctx, 2*time.Second)
		owners, err := c.ShardOwners(asking, f.stream)
		cancel()
		if err == nil && len(owners) == 1 && owners[0].NodeID != "" {
			return owners[0], nil
		}
		errs = append(errs, err)
	}
	return client.ShardOwner{}, errors.Join(errs...)
}

// newLeader is the name of the broker that leads instead of another one, for the report.
func (f *failover) newLeader(ctx context.Context, old string) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for {
		if owner, err := f.owner(ctx); err == nil && owner.NodeID != old {
			return owner.NodeID
		}
		if pause(ctx, 20*time.Millisecond) != nil {
			return "?"
		}
	}
}

// nextAck waits for an acknowledgement of a record that was published after at, by each publisher, and returns how long the
// first of them took: that is how long the stream was away. The others may have had to find another broker.
func (f *failover) nextAck(ctx context.Context, at time.Time) (time.Duration, error) {
	limit := time.NewTimer(settleWithin)
	defer limit.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		var first time.Duration
		all := true
		for _, p := range f.publishers {
			acked := p.ackedSince(at)
			if acked == 0 {
				all = false
			} else if first == 0 || acked < first {
				first = acked
			}
		}
		if all {
			return first, nil
		}
		select {
		case <-tick.C:
		case <-limit.C:
			return 0, fmt.Errorf("nothing was acknowledged within %v of the kill", settleWithin)
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

// manyInFlight waits, for a moment, until a window of publishes is in flight, so that something is at stake.
func (f *failover) manyInFlight(ctx context.Context) int {
	for deadline := time.Now().Add(2 * time.Second); time.Now().Before(deadline) && f.inFlight() < window; {
		if pause(ctx, 100*time.Microsecond) != nil {
			break
		}
	}
	return f.inFlight()
}

// inFlight counts publishes without an answer.
func (f *failover) inFlight() int {
	n := 0
	for _, p := range f.publishers {
		n += p.outstanding()
	}
	return n
}
