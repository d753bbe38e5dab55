package quorum

import (
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"felix.dev/felix/broker/wal"
)

const (
	// maxAppend is how many entries raft stores and sends at once, and the room of the channel
	// that proposals wait in.
	maxAppend = 512
	// maxProposals leaves room in that channel for raft's own, so that Propose never waits.
	maxProposals = maxAppend - 64
)

// proposals are those that raft has taken and not answered, in the order of their entries.
type proposals struct {
	g *Group

	mu      sync.Mutex // also held while raft takes one, which does not wait: it gives the order
	waiting []pending
	wake    chan struct{}
	gone    bool // the loop has ended
}

type pending struct {
	p      *Proposal
	future raft.ApplyFuture
}

func newProposals(g *Group) *proposals { return &proposals{g: g, wake: make(chan struct{}, 1)} }

// put hands an entry, or a barrier if it is nil, to raft.
func (q *proposals) put(give func() raft.ApplyFuture) *Proposal {
	p := &Proposal{done: make(chan struct{}), began: time.Now()}
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.gone:
		p.finish(nil, ErrClosed)
		return p
	case len(q.waiting) >= maxProposals:
		p.finish(nil, ErrBusy)
		return p
	}
	q.waiting = append(q.waiting, pending{p: p, future: q.expect(give())})
	select {
	case q.wake <- struct{}{}:
	default: // it is awake
	}
	return p
}

// expect has a future end with the group: raft forgets what is on its way to its loops
// as it shuts down, and would keep who waits for it for ever. The field is raft's, for
// this purpose, but it sets it for some kinds of futures only and has no way to ask for it.
func (q *proposals) expect(f raft.ApplyFuture) raft.ApplyFuture {
	endWith(f, q.g.ended)
	return f
}

func endWith(f raft.Future, ended chan struct{}) {
	v := reflect.ValueOf(f)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return // it has its answer already
	}
	if field := v.Elem().FieldByName("ShutdownCh"); field.CanSet() && field.Type() == reflect.TypeOf(ended) {
		field.Set(reflect.ValueOf(ended))
	}
}

// loop passes on raft's answers, which come in the order of the entries.
func (q *proposals) loop() {
	for {
		q.mu.Lock()
		if len(q.waiting) == 0 {
			q.mu.Unlock()
			select {
			case <-q.wake:
				continue
			case <-q.g.ended:
			}
			q.mu.Lock()
			q.gone = len(q.waiting) == 0
			gone := q.gone
			q.mu.Unlock()
			if gone {
				return
			}
			continue
		}
		w := q.waiting[0]
		q.mu.Unlock()

		err := w.future.Error() // raft answers each, or ends: see expect
		q.mu.Lock()
		q.waiting[0] = pending{}
		q.waiting = q.waiting[1:]
		q.mu.Unlock()
		var result any
		if err == nil {
			result = w.future.Response()
			if dropped, ok := result.(error); ok && errors.Is(dropped, errDropped) {
				err = ErrOutcomeUnknown
			}
		}
		if err = outcome(err); err != nil {
			result = nil
		}
		if w.p.finish(result, err) {
			q.g.proposed(time.Since(w.p.began), err)
		}
	}
}

// giveUp answers what has waited since before a moment; what raft makes of it is not
// awaited any more.
func (q *proposals) giveUp(before time.Time) {
	q.mu.Lock()
	var late []*Proposal
	for _, w := range q.waiting {
		if w.p.began.Before(before) {
			late = append(late, w.p)
		}
	}
	q.mu.Unlock()
	for _, p := range late {
		if p.finish(nil, ErrOutcomeUnknown) {
			q.g.proposed(time.Since(p.began), ErrOutcomeUnknown)
		}
	}
}

// outcome says what raft's error means for a proposal.
func outcome(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipTransferInProgress):
		return ErrNotLeader
	case errors.Is(err, ErrOutcomeUnknown):
		return err
	case errors.Is(err, wal.ErrDiskFull), errors.Is(err, wal.ErrReadOnly): // and nothing was kept of it
		return fmt.Errorf("%w: %w", ErrStuck, err)
	default: // leadership was lost, the log failed, or the group closes
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}
}
