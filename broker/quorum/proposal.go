package quorum

import (
	"context"
	"sync"
	"time"
)

// Proposal is an entry on its way. Its outcome is one of: applied (no error);
// ErrNotLeader, ErrStuck, ErrBusy, ErrTooLarge and ErrClosed, when nothing was appended;
// or ErrOutcomeUnknown. It is known within NodeConfig.ProposeTimeout.
type Proposal struct {
	done  chan struct{}
	began time.Time
	once  sync.Once

	result any
	err    error
}

func failed(err error) *Proposal {
	p := &Proposal{done: make(chan struct{})}
	p.finish(nil, err)
	return p
}

// finish says what came of it; the first word counts.
func (p *Proposal) finish(result any, err error) (first bool) {
	p.once.Do(func() {
		p.result, p.err = result, err
		close(p.done)
		first = true
	})
	return first
}

// Done is closed when the outcome is known.
func (p *Proposal) Done() <-chan struct{} { return p.done }

// Result is what Machine.Apply returned here, or why it was not called. Only after Done.
func (p *Proposal) Result() (any, error) { return p.result, p.err }

// Wait waits for the outcome. The context ends the wait, not the proposal.
func (p *Proposal) Wait(ctx context.Context) (any, error) {
	select {
	case <-p.done:
		return p.result, p.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
