package client

import (
	"context"
)

// Pending is a record on its way.
type Pending struct {
	batch *batch
	index uint32
}

// Done is closed when the outcome is known.
func (p *Pending) Done() <-chan struct{} { return p.batch.done }

// Wait waits for the outcome. If ctx ends first its error is returned, and the record is still on its way.
//
// An error that matches ErrOutcomeUnknown means that the record may have been stored; after every other error it was
// not.
func (p *Pending) Wait(ctx context.Context) (Receipt, error) {
	select {
	case <-p.batch.done:
	default:
		select {
		case <-p.batch.done:
		case <-ctx.Done():
			return Receipt{}, ctx.Err()
		}
	}
	b := p.batch
	if b.err != nil {
		return Receipt{}, b.err
	}
	if !b.hasOffset {
		return Receipt{}, nil
	}
	return Receipt{Offset: b.offset + uint64(p.index), HasOffset: true}, nil
}
