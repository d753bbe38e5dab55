//go:build chaos

package chaos

import (
	"context"
	"fmt"
	"sync"
	"time"

	"felix.dev/felix/client"
	"felix.dev/felix/test/chaos/history"
)

// pinned is a publisher and a reader that stay with one broker, whatever becomes of it.
type pinned struct {
	w      *crowd
	cancel context.CancelFunc
	over   sync.WaitGroup

	mu sync.Mutex
	// Guarded by mu.
	refusals int
	err      error
}

// pinned starts them. They connect anew each time, so that they learn of no other broker that they could go to.
func (w *crowd) pinned(stream string, m member) *pinned {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.ctx)
	p := &pinned{w: w, cancel: cancel}
	shard := history.Shard{Stream: stream}
	source := w.rec.Source(history.Source{Shard: shard, Unordered: true})
	w.mu.Lock()
	w.shards[shard] = true
	w.mu.Unlock()
	p.over.Go(func() {
		for n := uint64(1); ctx.Err() == nil; n++ {
			p.publish(ctx, stream, m, history.ID{Source: source, Number: n})
		}
	})
	p.over.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			p.read(ctx, shard, m, i)
		}
	})
	return p
}

// publish publishes one record with a client of its own.
func (p *pinned) publish(ctx context.Context, stream string, m member, id history.ID) {
	cl, err := client.Dial(ctx, p.config(m))
	if err != nil {
		return
	}
	defer func() { _ = cl.Close() }() // it was answered
	note := p.w.rec.Publish(id)
	r, err := cl.Publish(ctx, streamOf(stream), client.Message{Payload: id.Payload(100)})
	if ctx.Err() != nil {
		return
	}
	p.w.told(underWay{note: note}, r, err, &flow{stream: stream}, &count{})
	if err != nil {
		p.mu.Lock()
		p.refusals++
		p.err = err
		p.mu.Unlock()
	}
}

// read reads for a moment what the broker gives as committed. That it gives nothing is no fault.
func (p *pinned) read(ctx context.Context, shard history.Shard, m member, round int) {
	cl, err := client.Dial(ctx, p.config(m))
	if err != nil {
		return
	}
	defer func() { _ = cl.Close() }() // what was read is noted
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	// Where another broker leads this is refused: nobody is followed there.
	owners, err := cl.ShardOwners(ctx, streamOf(shard.Stream))
	if err != nil || len(owners) == 0 || owners[0].NodeID != m.node() {
		return
	}
	sub, err := cl.Subscribe(ctx, streamOf(shard.Stream), client.SubscribeConfig{Start: client.Latest(), NoReconnect: true})
	if err != nil {
		return
	}
	reading := p.w.rec.Reader(history.Reader{
		Name: fmt.Sprintf("pinned to %s, %d", m.node(), round), Shard: shard, Via: m.node(), Start: sub.StartOffset(),
	})
	for {
		events, err := sub.NextBatch(ctx)
		if err != nil {
			return
		}
		for i := range events {
			if err := deliver(reading, &events[i]); err != nil {
				p.w.fail(fmt.Errorf("%s, pinned reader: %w", shard, err))
				return
			}
		}
	}
}

func (p *pinned) config(m member) client.Config {
	return client.Config{
		Addrs: []string{m.clientAddr()}, Tenant: tenant, Token: p.w.c.token, CAFile: p.w.c.ca, PublishTimeout: 10 * time.Second,
	}
}

// refused counts the publishes that failed, last is why the last one did.
func (p *pinned) refused() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refusals
}

func (p *pinned) last() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

func (p *pinned) stop() {
	p.cancel()
	p.over.Wait()
}
