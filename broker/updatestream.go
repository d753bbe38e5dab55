package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"felix.dev/felix/broker/catalog"
	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/wire"
)

// update changes a stream's settings. More shards are added beside the others; any
// other change of a durable stream closes its shards and opens them anew, so that
// its readers resume. A memory stream would lose its records, and refuses that.
func (s *streams) update(ctx context.Context, n catalog.Name, change catalog.Change) (*served, error) {
	s.changing.Lock()
	defer s.changing.Unlock()
	if s.closed {
		return nil, errClosing
	}
	have, err := s.lookup(n)
	if err != nil {
		return nil, err
	}
	if err := checkChange(&have.entry.Spec, change); err != nil {
		return nil, err
	}
	e, err := s.catalog.Update(n, change)
	if err != nil {
		return nil, err
	}
	grown, rest := e.Spec, have.entry.Spec
	rest.Shards = grown.Shards
	switch {
	case e.Spec == have.entry.Spec && have.stream != nil:
		return have, nil
	case grown == rest && have.stream != nil:
		return s.grow(have, &e)
	}
	return s.reopen(ctx, have, &e)
}

// checkChange refuses what a memory stream would lose its records by.
func checkChange(spec *catalog.StreamSpec, c catalog.Change) error {
	if spec.Durability == catalog.Memory && changesSettings(spec, c) {
		return &catalog.InvalidError{
			Name: spec.Name, Err: errors.New("a memory stream's settings other than its shards change only by deleting and creating it"),
		}
	}
	return nil
}

// changesSettings says whether a change is one of more than the number of shards.
func changesSettings(spec *catalog.StreamSpec, c catalog.Change) bool {
	return c.Retention != nil && *c.Retention != spec.Retention ||
		c.Queue != nil && *c.Queue != spec.Queue ||
		c.TailBytes != nil && *c.TailBytes != spec.TailBytes ||
		c.Fsync != nil && *c.Fsync != spec.Fsync
}

// grow adds the shards that a stream does not have yet. The caller holds changing.
func (s *streams) grow(have *served, e *catalog.Entry) (*served, error) {
	next := *have
	next.entry, next.shards = *e, slices.Clone(have.shards)
	places := slices.Clone(have.stream.Places())
	for i := len(places); i < int(e.Spec.Shards); i++ {
		k, err := s.opener.openShard(e, i, true)
		if err != nil {
			_ = closeShards(context.Background(), next.shards[len(have.shards):], stream.EndShutdown) // nothing is in them
			return nil, fmt.Errorf("broker: stream %s: open shard %d: %w", e.Spec.Name, i, err)
		}
		places = append(places, k.Shard)
		next.shards = append(next.shards, k)
	}
	next.stream = stream.NewStream(have.stream.Name, e.Incarnation, have.stream.Durability, have.stream.Routing, places)
	s.publish(e.Spec.Name, &next)
	return &next, nil
}

// reopen closes a stream's shards and opens them with its new settings. The caller
// holds changing.
func (s *streams) reopen(ctx context.Context, have *served, e *catalog.Entry) (*served, error) {
	away := unavailable(e, nil, &stream.Error{
		Code: wire.CodeShardUnavailable, Retry: wire.RetryNow, Reason: "not_ready", Message: "the stream's settings are being changed",
	})
	away.before = have.counted()
	s.publish(e.Spec.Name, away)
	wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), reopenWait)
	defer cancel()
	if err := closeShards(wait, have.shards, stream.EndShutdown); err != nil {
		s.log.Warn("stream closed with an error to change its settings", slog.String("stream", e.Spec.Name.String()), slog.Any("error", err))
	}
	v := s.opener.open(e, false)
	v.before = have.counted() // what was under way included
	s.publish(e.Spec.Name, v)
	if v.stream == nil {
		return nil, v.refusal
	}
	return v, nil
}
