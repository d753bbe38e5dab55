package replica

import (
	"context"
	"errors"
	"fmt"
	"time"

	"felix.dev/felix/broker/seglog"
	"felix.dev/felix/broker/stream"
)

// applyRetry is how long a write that storage refused waits for the next attempt, at
// first and at most.
const (
	applyRetry    = 20 * time.Millisecond
	applyRetryMax = time.Second
)

// Apply implements quorum.Machine. Of a batch entry the result is a []stream.Result, of
// others a changed; nil if it was interrupted. It returns when the entry is applied: as
// long as storage refuses it is tried again, which the quorum group sees.
func (g *Group) Apply(index, term uint64, data []byte) any {
	g.begun.Store(index)
	result := g.apply(index, term, data)
	if g.ctx.Err() == nil {
		g.applied.Store(index)
	}
	return result
}

func (g *Group) apply(index, term uint64, data []byte) any {
	if g.ctx.Err() != nil {
		return nil
	}
	if len(data) < entryHeader || data[0] != entryVersion {
		return g.unreadable(index, fmt.Errorf("%w: it is of another version", errBadEntry))
	}
	body := data[entryHeader:]
	switch kind := data[1]; kind {
	case kindBatch:
		return g.applyBatch(index, term, body)
	case kindTrim:
		trims, err := readTrims(body)
		if err != nil {
			return g.unreadable(index, err)
		}
		g.applyTrims(trims)
		return changed{}
	case kindOpen, kindConfigure, kindSeal, kindDrop:
		c, err := readChange(kind, body)
		if err != nil {
			return g.unreadable(index, err)
		}
		return g.applyChange(&c)
	default:
		return g.unreadable(index, fmt.Errorf("%w: kind %d", errBadEntry, kind))
	}
}

// unreadable stops at an entry that a later release has made, or that is damaged: to go
// on would be to part from the other replicas.
func (g *Group) unreadable(index uint64, err error) any {
	err = fmt.Errorf("replica: group %d stops at entry %d, this release cannot apply it: %w", g.cfg.Group, index, err)
	g.cfg.Log.Error("the group stops on this broker", "err", err)
	g.setStuck(err)
	<-g.ctx.Done()
	return nil
}

func (g *Group) applyBatch(index, term uint64, body []byte) any {
	r := reader{b: body}
	at, n := int64(r.u64()), r.u32()
	if r.short || uint64(n)*itemHeader > uint64(len(r.b)) {
		return g.unreadable(index, fmt.Errorf("%w: %d batches in %d bytes", errBadEntry, n, len(body)))
	}
	defer g.forget()
	out := make([]stream.Result, n)
	for i := range out {
		slot, b, err := readItem(&r)
		if err != nil {
			return g.unreadable(index, err)
		}
		s := g.bySlot[slot] // only this goroutine changes it
		if s == nil {
			out[i].Err = deletedError()
			continue
		}
		if len(s.batches) == 0 {
			g.touched = append(g.touched, s)
		}
		s.batches, s.at = append(s.batches, b), append(s.at, i)
	}
	for _, s := range g.touched {
		if cap(s.results) < len(s.batches) {
			s.results = make([]stream.Result, len(s.batches))
		}
		results := s.results[:len(s.batches)]
		if !g.applyTo(s, term, at, results) {
			return nil
		}
		for i, k := range s.at {
			out[k] = results[i]
		}
	}
	return out
}

// forget gives up what Apply noted of an entry.
func (g *Group) forget() {
	for _, s := range g.touched {
		clear(s.batches)
		clear(s.results[:cap(s.results)])
		s.batches, s.at = s.batches[:0], s.at[:0]
	}
	g.touched = g.touched[:0]
}

// applyTo applies a shard's part of an entry, however often it takes; false: interrupted.
func (g *Group) applyTo(s *shard, term uint64, at int64, results []stream.Result) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return g.insist(func() error {
		err := s.Apply(term, at, s.batches, results)
		if err != nil {
			return s.recover(err)
		}
		return nil
	}, "shard", s.key)
}

// recover makes a shard ready for the next attempt after its log has refused records,
// as far as that can be done here. It returns why it was refused, unless the next
// attempt may come at once. The caller holds s.mu.
func (s *shard) recover(err error) error {
	_, damaged := errors.AsType[*seglog.CorruptionError](err)
	lacking := s.log.Next() < s.Mark()
	if !damaged && !lacking && (errors.Is(err, seglog.ErrPoisoned) || errors.Is(err, seglog.ErrClosed)) {
		if openErr := s.anew(s.log.reopen); openErr != nil {
			return errors.Join(err, openErr)
		}
		lacking = s.log.Next() < s.Mark()
		damaged = s.log.Err() != nil
		if !damaged && !lacking {
			s.g.cfg.Log.Warn("a log that had failed was opened anew", "shard", s.key, "err", err)
			return err // the disk may need a moment
		}
	}
	if damaged || lacking {
		s.fail(err)
		if fillErr := s.repair(s.g.ctx); fillErr != nil {
			return errors.Join(err, fillErr)
		}
	}
	return err
}

// insist repeats what storage refuses, and says meanwhile that the group is stuck;
// false: it was interrupted.
func (g *Group) insist(do func() error, what string, of any) bool {
	wait := applyRetry
	for first := true; ; first = false {
		err := do()
		if err == nil {
			if !first {
				g.setStuck(nil)
				g.cfg.Log.Info("entries are applied again", what, of)
			}
			return true
		}
		if first {
			g.cfg.Log.Error("entries cannot be applied, it is tried again", what, of, "err", err)
		}
		g.setStuck(fmt.Errorf("replica: %s %v: %w", what, of, err))
		if !sleep(g.ctx, wait) {
			return false
		}
		wait = min(2*wait, applyRetryMax)
	}
}

// setStuck notes why entries cannot be applied, and refuses the publishes that wait.
func (g *Group) setStuck(err error) {
	if err == nil {
		g.stuck.Store(nil)
		return
	}
	g.stuck.Store(&stuck{err})
	g.proposer.drop(storageRefusal(err))
}

// sleep waits; false: ctx is over.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
