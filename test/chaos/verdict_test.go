//go:build chaos

package chaos

import (
	"context"
	"fmt"
	"sync"
	"time"

	"felix.dev/felix/broker/wire"
	"felix.dev/felix/client"
	"felix.dev/felix/test/chaos/history"
)

// finish lets the publishers end and the readers come to the end, reads every shard once more through every broker that is
// running, and holds all of it against each other.
func (w *crowd) finish() {
	w.t.Helper()
	close(w.quit)
	w.wait("the publishers have their last answers", &w.publishing)
	w.check()
	w.mu.Lock()
	var shards []history.Shard
	for s := range w.shards {
		shards = append(shards, s)
	}
	readers := w.readers
	w.mu.Unlock()
	ends := map[history.Shard]uint64{}
	for _, s := range shards {
		ends[s] = w.mark(s) + 1
	}
	for _, m := range w.c.members {
		if !m.running() {
			continue
		}
		for _, s := range shards {
			w.readBack(s, ends[s], m)
		}
	}
	for _, r := range readers {
		w.c.until("a reader has read to the end", func() bool {
			shard, over := r.Shard(), w.ctx.Err() != nil
			return over || r.Next() >= ends[shard] || r.Stopped()
		})
	}
	w.check()
	w.fail(nil)
	w.wait("the readers have ended", &w.reading)
	h := w.rec.History()
	w.t.Log(history.Tally(h))
	if found := history.Check(h); len(found) > 0 {
		w.t.Errorf("what happened cannot be explained:\n%s", history.Report(found))
	}
	if w.rec.AckCount() == 0 {
		w.t.Error("nothing was acknowledged: the test shows nothing")
	}
	if w.gaveUp > 0 {
		w.t.Errorf("idempotent publishers have given up %d publishes", w.gaveUp)
	}
}

// mark publishes a record behind all others of a shard and returns its offset. What had an unknown outcome and comes later still
// would stand behind it: that is read by the followers, and of no interest to anybody else.
func (w *crowd) mark(s history.Shard) uint64 {
	w.t.Helper()
	id := history.ID{Source: w.rec.Source(history.Source{Shard: s}), Number: 1}
	pub, err := w.c.dial(w.running()).NewPublisher(streamOf(s.Stream), client.PublisherConfig{Idempotent: true})
	if err != nil {
		w.t.Fatal(err)
	}
	m := client.Message{Payload: id.Payload(history.Head)}
	if s.Number > 0 || w.keyed(s.Stream) {
		m.Keyed, m.Key = true, keyOf(s.Number, w.shardCount(s.Stream))
	}
	ctx, cancel := context.WithTimeoutCause(w.ctx, patience, fmt.Errorf("not within %s", patience))
	defer cancel()
	note := w.rec.Publish(id)
	pending, err := pub.Publish(ctx, m)
	if err != nil {
		w.t.Fatalf("%s: publish the last record: %v", s, err)
	}
	r, err := pending.Wait(ctx)
	if err != nil {
		w.t.Fatalf("%s: publish the last record: %v", s, err)
	}
	note.Acked(r.Offset)
	return r.Offset
}

// readBack reads a shard up to end through one broker.
func (w *crowd) readBack(s history.Shard, end uint64, via member) {
	w.t.Helper()
	w.mu.Lock()
	trims := w.trims[s.Stream]
	w.mu.Unlock()
	ctx, cancel := context.WithTimeoutCause(w.ctx, patience, fmt.Errorf("not within %s", patience))
	defer cancel()
	sub, err := w.c.dial(via).Subscribe(ctx, streamOf(s.Stream), client.SubscribeConfig{
		Start: client.Earliest(), Shard: s.Number, ResumeTimeout: patience, SkipLost: trims,
	})
	if err != nil {
		w.t.Fatalf("%s: read back through %s: %v", s, via.node(), err)
	}
	defer func() { _ = sub.Close() }()
	final := history.Final{Shard: s, Via: via.node(), Oldest: sub.StartOffset(), End: end, Records: map[uint64]history.ID{}}
	for next := sub.StartOffset(); next < end; {
		events, err := sub.NextBatch(ctx)
		if err != nil {
			w.t.Fatalf("%s: read back through %s at %d of %d: %v (%v)", s, via.node(), next, end, err, context.Cause(ctx))
		}
		for i := range events {
			e := &events[i]
			id, err := history.Parse(e.Payload)
			if err != nil || e.Offset != next+e.Skipped+e.Gap || e.Gap > 0 && !trims {
				w.t.Fatalf("%s: read back through %s: offset %d, hidden %d, gap %d, when %d was next: %v", s, via.node(), e.Offset, e.Skipped, e.Gap, next, err)
			}
			if e.Gap > 0 { // retention was faster
				final.Oldest = e.Offset
				clear(final.Records)
			}
			final.Records[e.Offset] = id
			next = e.Offset + 1
		}
		final.End = max(end, next)
	}
	w.rec.Final(final)
}

// running is a broker that runs.
func (w *crowd) running() member {
	w.t.Helper()
	for _, m := range w.c.members {
		if m.running() {
			return m
		}
	}
	w.t.Fatal("nobody is running")
	return nil
}

func (w *crowd) shardCount(stream string) uint32 {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := uint32(0)
	for s := range w.shards {
		if s.Stream == stream {
			n = max(n, s.Number+1)
		}
	}
	return n
}

func (w *crowd) keyed(stream string) bool { return w.shardCount(stream) > 1 }

// keyOf finds a key of a shard.
func keyOf(shard, shards uint32) []byte {
	for i := 0; ; i++ {
		if key := fmt.Append(nil, i); wire.ShardOf(key, true, shards, wire.RoutingModulo) == shard {
			return key
		}
	}
}

// wait waits for a group as long as there is patience.
func (w *crowd) wait(what string, wg *sync.WaitGroup) {
	w.t.Helper()
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(patience + 10*time.Second):
		w.t.Fatalf("not within %s: %s", patience, what)
	}
}
