package broker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"felix.dev/felix/broker/catalog"
	"felix.dev/felix/broker/cluster"
	"felix.dev/felix/broker/route"
	"felix.dev/felix/broker/seglog"
	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/wire"
)

// The move of a durable shard from the broker that owns it to this one: its records
// are copied while it is served there, then its owner lets go of it, and the rest is
// copied. The catalog's next epoch is this broker's.

const (
	methodPage = "shard.page"
	methodHand = "shard.hand-over"

	movePageBytes = 512 << 10
	// moveClose is how much may be missing when the owner is asked to let go.
	moveClose = 1024
)

// pageRequest asks for records of a shard from an offset on.
type pageRequest struct {
	Incarnation string `json:"incarnation"`
	Shard       uint32 `json:"shard"`
	Epoch       uint64 `json:"epoch"`
	From        uint64 `json:"from"`
}

func (r *pageRequest) key() route.Key { return route.Key{Incarnation: r.Incarnation, Shard: r.Shard} }

// pageAnswer has whole records, and where the shard begins and ends.
type pageAnswer struct {
	Oldest  uint64        `json:"oldest"`
	End     uint64        `json:"end"`
	Records []movedRecord `json:"records,omitempty"`
}

type movedRecord struct {
	Kind     seglog.Kind `json:"kind"`
	Base     uint64      `json:"base"`
	Count    uint32      `json:"count"`
	Micros   int64       `json:"micros"`
	Producer *[2]uint64  `json:"producer,omitempty"` // id, sequence
	Frame    []byte      `json:"frame"`
}

// takeShard brings a durable shard here, as cluster.Config.MoveShard wants it.
func (s *clusterStreams) takeShard(ctx context.Context, m cluster.ShardMove) error {
	e, shard := &m.Entry, int(m.Shard)
	ask := pageRequest{Incarnation: e.Incarnation, Shard: m.Shard, Epoch: m.Epoch}
	var at pageAnswer
	if err := s.peers.Call(ctx, m.From, methodPage, ask, &at); err != nil {
		return fmt.Errorf("broker: move shard %d of %s from %s: %w", shard, e.Spec.Name, m.From, err)
	}
	log, err := s.openMoved(e, shard, at.Oldest)
	if err != nil {
		return err
	}
	if err = s.begunByIt(ctx, m.From, ask, log); err == nil {
		err = s.copyShard(ctx, m.From, ask, log)
	}
	return errors.Join(err, log.Close())
}

// openMoved opens what was copied so far, or an empty log.
func (s *clusterStreams) openMoved(e *catalog.Entry, shard int, oldest uint64) (*seglog.Log, error) {
	cfg, err := s.opener.logConfig(e, shard)
	if err != nil {
		return nil, err
	}
	cfg.Fsync, cfg.FsyncEvery, cfg.MaxBytes, cfg.MaxAge = seglog.FsyncManual, 0, 0, 0
	cfg.First = max(cfg.First, oldest)
	// What is left of a time when the shard was this broker's is older than what comes.
	if err := s.opener.journals.forget(e, shard); err != nil {
		return nil, err
	}
	log, recovery, err := seglog.Open(cfg)
	if err == nil && recovery.Corruption != nil { // the owner has all of it
		if err = errors.Join(log.Close(), forgetHanded(cfg.Dir)); err == nil {
			err = seglog.Remove(cfg.FS, cfg.Dir)
		}
		if err == nil {
			log, _, err = seglog.Open(cfg)
		}
	}
	if err != nil {
		return nil, err
	}
	if log.Next() >= oldest {
		return log, nil
	}
	if err := log.Reset(oldest); err != nil { // retention took what comes next
		return nil, errors.Join(err, log.Close())
	}
	return log, nil
}

// begunByIt makes sure that what is here already is what its owner has. An earlier owner,
// or this broker as one, may have written records behind those that were handed on: the
// offsets were given to others since. The last record tells.
func (s *clusterStreams) begunByIt(ctx context.Context, from string, ask pageRequest, log *seglog.Log) error {
	if log.Next() == log.Oldest() {
		return nil
	}
	ask.From = log.Next() - 1
	have, _, err := log.Records(ask.From, 1, nil)
	if err != nil {
		return err
	}
	var page pageAnswer
	if err := s.peers.Call(ctx, from, methodPage, ask, &page); err != nil {
		return fmt.Errorf("broker: move shard %d of incarnation %s from %s: %w", ask.Shard, ask.Incarnation, from, err)
	}
	if len(have) > 0 && len(page.Records) > 0 {
		a, b := &have[0], page.Records[0].record()
		if a.Kind == b.Kind && a.Base == b.Base && a.Count == b.Count && a.TimeMicros == b.TimeMicros && bytes.Equal(a.Frame, b.Frame) {
			return nil
		}
	}
	s.log.Info("what was here of a shard is not what its owner has, it is copied anew", slog.String("from", from), slog.Uint64("offset", ask.From))
	return log.Reset(page.Oldest)
}

// copyShard copies until the owner has let go and nothing is missing.
func (s *clusterStreams) copyShard(ctx context.Context, from string, ask pageRequest, log *seglog.Log) error {
	method := methodPage
	for pages := 0; ; pages++ {
		ask.From = log.Next()
		var page pageAnswer
		if err := s.peers.Call(ctx, from, method, ask, &page); err != nil {
			return fmt.Errorf("broker: move shard %d of incarnation %s from %s: %w", ask.Shard, ask.Incarnation, from, err)
		}
		if page.Oldest > log.Next() {
			if err := log.Reset(page.Oldest); err != nil {
				return err
			}
			continue
		}
		records := make([]seglog.Record, 0, len(page.Records))
		for _, r := range page.Records {
			if r.Base < log.Next() { // the page began inside of a record that is here
				continue
			}
			records = append(records, r.record())
		}
		if err := log.Append(records); err != nil {
			return err
		}
		if pages%256 == 255 {
			s.log.Info("a shard is being moved here", slog.String("from", from), slog.Uint64("offset", log.Next()), slog.Uint64("of", page.End))
		}
		missing := page.End - min(page.End, log.Next())
		switch {
		case method == methodHand && missing == 0:
			return log.Sync()
		case missing <= moveClose:
			method = methodHand
		}
	}
}

func (r *movedRecord) record() seglog.Record {
	out := seglog.Record{Kind: r.Kind, Base: r.Base, Count: r.Count, TimeMicros: r.Micros, Frame: r.Frame}
	if r.Producer != nil {
		out.HasProducer, out.Producer, out.Sequence = true, r.Producer[0], r.Producer[1]
	}
	return out
}

// answerMoves has other brokers copy shards that this one owns.
func (s *clusterStreams) answerMoves() {
	s.peers.HandleCall(methodPage, func(_ context.Context, _ string, body json.RawMessage) (any, error) {
		return s.givePage(body, func(*ownedShard) error { return nil })
	})
	s.peers.HandleCall(methodHand, func(ctx context.Context, from string, body json.RawMessage) (any, error) {
		return s.givePage(body, func(o *ownedShard) error { return s.handOver(ctx, o, from) })
	})
}

// handOver lets go of a shard for the broker that it is being moved to: what it has
// acknowledged by then is all that it ever will.
func (s *clusterStreams) handOver(ctx context.Context, o *ownedShard, to string) error {
	e, err := s.cluster.State().Get(o.entry.Spec.Name)
	if err != nil || e.Incarnation != o.entry.Incarnation || e.Places[o.shard].Moving != to {
		return fmt.Errorf("broker: shard %d of %s is not being moved to %s", o.shard, o.entry.Spec.Name, to)
	}
	o.leaving.Store(true)
	s.where.wake()
	if err := o.Close(ctx, stream.EndShutdown); err != nil {
		return err
	}
	// An earlier call may have closed it and not waited long enough. Of a log that failed
	// nothing more is acknowledged.
	if o.Written() > o.Mark() && o.Info().Err == nil {
		return fmt.Errorf("broker: shard %d of %s has writes that wait for the disk", o.shard, o.entry.Spec.Name)
	}
	return noteHanded(shardDir(s.opener.dataDir, &o.entry, o.shard), handed{Epoch: o.entry.Places[o.shard].Epoch, To: to})
}

// givePage reads a page of an owned shard, after before.
func (s *clusterStreams) givePage(body json.RawMessage, before func(*ownedShard) error) (any, error) {
	var ask pageRequest
	if err := json.Unmarshal(body, &ask); err != nil {
		return nil, fmt.Errorf("broker: page of a shard: %w", err)
	}
	o := s.where.ownedShard(ask.key())
	if o == nil || o.entry.Places[o.shard].Epoch != ask.Epoch || o.segments == nil {
		return nil, &stream.Error{Code: wire.CodeShardUnavailable, Retry: wire.RetryNow, Reason: stream.ReasonNotReady, Message: "the shard is not here"}
	}
	if err := before(o); err != nil {
		return nil, err
	}
	page := pageAnswer{Oldest: o.Oldest(), End: o.Mark()}
	if ask.From < page.Oldest || ask.From >= page.End {
		return page, nil
	}
	records, _, err := o.segments.Records(ask.From, movePageBytes, nil)
	if err != nil {
		return nil, err
	}
	for i := range records {
		r := &records[i]
		if r.Base >= page.End {
			break
		}
		out := movedRecord{Kind: r.Kind, Base: r.Base, Count: r.Count, Micros: r.TimeMicros, Frame: r.Frame}
		if r.HasProducer {
			out.Producer = &[2]uint64{r.Producer, r.Sequence}
		}
		page.Records = append(page.Records, out)
	}
	return page, nil
}
