package broker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"time"

	"felix.dev/felix/broker/catalog"
	"felix.dev/felix/broker/placement"
	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/wire"
)

// changeWait bounds how long a change of a stream is waited for after the cluster has
// agreed on it: it comes about by itself.
const changeWait = 10 * time.Second

// create makes a stream, or finds it made, and waits until it can be used.
func (s *clusterStreams) create(ctx context.Context, spec catalog.StreamSpec, requestID string) (*served, bool, error) {
	spec = spec.Normalized()
	if err := spec.Validate(); err != nil {
		return nil, false, err
	}
	if keepsByAge(&spec) {
		return nil, false, &catalog.InvalidError{Name: spec.Name, Err: errKeepsByAge}
	}
	incarnation, err := catalog.NewIncarnation(rand.Reader)
	if err != nil {
		return nil, false, err
	}
	r, err := s.placed(ctx, func(v placement.View) catalog.Command {
		return catalog.CreateStream{
			Spec: spec, Incarnation: incarnation, RequestID: requestID, Places: placement.Shards(v, spec, 0),
		}
	})
	if err != nil {
		return nil, false, err
	}
	v, err := s.await(ctx, r.Entry)
	return v, r.Created, err
}

// update changes a stream's settings.
func (s *clusterStreams) update(ctx context.Context, n catalog.Name, change catalog.Change) (*served, error) {
	have, err := s.cluster.State().Get(n)
	if err != nil {
		return nil, err
	}
	if err := checkChange(&have.Spec, change); err != nil {
		return nil, err
	}
	r, err := s.placed(ctx, func(v placement.View) catalog.Command {
		cmd := catalog.UpdateStream{Name: n, Change: change}
		if e, err := v.State.Get(n); err == nil && change.Shards != nil && *change.Shards > e.Spec.Shards {
			grown := e.Spec
			grown.Shards = *change.Shards
			cmd.Places = placement.Shards(v, grown, e.Spec.Shards)
		}
		return cmd
	})
	if err != nil {
		return nil, err
	}
	return s.await(ctx, r.Entry)
}

// remove deletes a stream: the cluster agrees that it is to go, whoever serves its
// shards says where they end, and with the last one it is buried.
func (s *clusterStreams) remove(ctx context.Context, n catalog.Name) error {
	have, err := s.cluster.State().Get(n)
	if err != nil {
		return err
	}
	if _, err := s.propose(ctx, catalog.SealStream{Name: n, Incarnation: have.Incarnation}); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, changeWait)
	defer cancel()
	for {
		changed := s.cluster.Changed()
		st := s.cluster.State()
		e, err := st.Get(n)
		if err != nil || e.Incarnation != have.Incarnation {
			s.cluster.Spread(ctx)
			return nil // it is gone, as was wanted
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return &stream.Error{
				Code: wire.CodeShardUnavailable, Retry: wire.RetryAfter, RetryAfter: time.Second, Reason: stream.ReasonOwnerUnavailable,
				Message: fmt.Sprintf("the stream is being deleted; %d of its %d shards have not said yet where they end, which goes on by itself",
					int(e.Spec.Shards)-len(e.Ends), e.Spec.Shards),
			}
		}
	}
}

// placed proposes a command that says where shards are to be, computed anew if the
// cluster has become another one meanwhile.
func (s *clusterStreams) placed(ctx context.Context, cmd func(placement.View) catalog.Command) (r catalog.Result, err error) {
	const attempts = 3
	for range attempts {
		r, err = s.propose(ctx, cmd(s.cluster.View()))
		if !errors.Is(err, catalog.ErrPlacement) {
			break
		}
	}
	return r, err
}

func (s *clusterStreams) propose(ctx context.Context, cmd catalog.Command) (catalog.Result, error) {
	r, err := s.cluster.Propose(ctx, cmd)
	if err != nil {
		return r, err
	}
	return r, r.Err
}

// await waits until this broker serves a stream as the catalog has it and somebody is
// known for each of its shards, or for a while: it comes about by itself.
func (s *clusterStreams) await(ctx context.Context, e *catalog.Entry) (*served, error) {
	ctx, cancel := context.WithTimeout(ctx, changeWait)
	defer cancel()
	for {
		s.mu.Lock()
		advance := s.advance
		s.mu.Unlock()
		moved := s.where.Changed()
		v, err := s.lookup(e.Spec.Name)
		if err == nil && v.entry.Incarnation == e.Incarnation && v.entry.Spec == e.Spec && s.usable(e) {
			s.cluster.Spread(ctx) // so that it can be used through any broker
			return v, nil
		}
		select {
		case <-advance:
		case <-moved:
		case <-ctx.Done():
			if v == nil {
				v = &served{entry: *e, find: func(int) *openShard { return nil }}
			}
			return v, nil
		}
	}
}

// caughtUp returns once this broker serves the catalog that it has.
func (s *clusterStreams) caughtUp(ctx context.Context) error {
	want := s.cluster.State().Version()
	for {
		s.mu.Lock()
		seen, advance := s.seen, s.advance
		s.mu.Unlock()
		if seen >= want {
			return nil
		}
		select {
		case <-advance:
		case <-ctx.Done():
			return fmt.Errorf("broker: what the catalog has is not served yet: %w", ctx.Err())
		}
	}
}

// usable says whether every shard of a stream is somewhere.
func (s *clusterStreams) usable(e *catalog.Entry) bool {
	for i := range e.Places {
		at := s.where.Lookup(keyOf(e, i))
		if at.Local == nil && at.Node == "" {
			return false
		}
	}
	return true
}

// reserve makes sure that a memory shard's offsets are never used again: in blocks, as
// it costs the cluster a round.
func (s *clusterStreams) reserve(n catalog.Name, shard uint32, upTo uint64) (uint64, error) {
	st := s.cluster.State()
	e, err := st.Get(n)
	if err != nil {
		return 0, err
	}
	if int(shard) < len(e.Reserved) && e.Reserved[shard] >= upTo {
		return e.Reserved[shard], nil
	}
	if int(shard) >= len(e.Places) { // another stream has the name by now
		return 0, fmt.Errorf("broker: offsets of shard %d of %s: %w", shard, n, stream.ErrNotLeader)
	}
	incarnation := e.Incarnation
	mark := upTo + st.Settings().ReserveBlock
	if mark < upTo {
		mark = math.MaxUint64
	}
	ctx, cancel := context.WithTimeout(context.Background(), dutyTimeout)
	defer cancel()
	if _, err := s.propose(ctx, catalog.ReserveOffsets{Marks: []catalog.Mark{{
		Name: n, Incarnation: e.Incarnation, Shard: shard, Epoch: e.Places[shard].Epoch, UpTo: mark,
	}}}); err != nil {
		return 0, err
	}
	if e, err = s.cluster.State().Get(n); err != nil {
		return 0, err
	}
	// The shard is another broker's by now, or the name another stream's.
	if e.Incarnation != incarnation || int(shard) >= len(e.Reserved) || e.Reserved[shard] < upTo {
		return 0, fmt.Errorf("broker: offsets of shard %d of %s: %w", shard, n, stream.ErrNotLeader)
	}
	return e.Reserved[shard], nil
}
