package replica

import (
	"errors"
	"fmt"
	"testing"

	"felix.dev/felix/broker/quorum"
	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/wire"
)

// sizes are the numbers of batches in the entries of publishes.
func (b *bed) sizes() (out []int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.entries {
		if e.data[1] == kindBatch {
			r := reader{b: e.data[entryHeader+8:]}
			out = append(out, int(r.u32()))
		}
	}
	return out
}

func (b *bed) publishMany(k *node, key ShardKey, n, bytes int) (out []<-chan stream.Result) {
	for i := range n {
		p := region(fmt.Sprint(i) + string(make([]byte, bytes)))
		out = append(out, k.begin(key, &stream.Publish{Records: p}))
	}
	return out
}

// A publish alone goes at once; what comes while one is under way shares the next
// entry, unless it is a lot.
func TestPublishesShareEntries(t *testing.T) {
	b := newBed(t, 1, nil)
	a := b.lead(0)
	key := b.openShard(a, 0, Opening{})
	a.pause(true)
	answers := b.publishMany(a, key, 51, 10)
	if got := fmt.Sprint(b.sizes()); got != "[1]" {
		t.Fatalf("entries of %s batches while the first is under way", got)
	}
	answers = append(answers, b.publishMany(a, key, 14, 10)...)
	if got := fmt.Sprint(b.sizes()); got != "[1 64]" {
		t.Fatalf("entries of %s batches behind 64 that wait", got)
	}
	answers = append(answers, b.publishMany(a, key, 1, 300<<10)...)
	if got := fmt.Sprint(b.sizes()); got != "[1 64 1]" {
		t.Fatalf("entries of %s batches behind a large one", got)
	}
	a.pause(false)
	for i, c := range answers {
		if r := a.wait(c); r.Err != nil || r.Offset != uint64(i) {
			t.Fatalf("publish %d: %v", i, r)
		}
	}
}

// What may be under way and what may wait is bounded; what is beyond is refused at once.
func TestProposerIsBounded(t *testing.T) {
	b := newBed(t, 1, func(c *Config) { c.InflightEntries, c.QueueBytes, c.EntryBytes = 2, 1<<20, 300<<10 })
	a := b.lead(0)
	key := b.openShard(a, 0, Opening{})
	a.pause(true)
	answers := b.publishMany(a, key, 8, 256<<10)
	if got := fmt.Sprint(b.sizes()); got != "[1 1]" {
		t.Errorf("entries of %s batches, two may be under way", got)
	}
	var e *stream.Error
	for _, c := range answers[5:] {
		if r := a.wait(c); !errors.As(r.Err, &e) || e.Code != wire.CodeOverloaded || e.Retry != wire.RetryAfter {
			t.Errorf("beyond the bound: %v", r)
		}
	}
	a.pause(false)
	for i, c := range answers[:5] {
		if r := a.wait(c); r.Err != nil || r.Offset != uint64(i) {
			t.Errorf("publish %d: %v", i, r)
		}
	}
	if size := quorum.MaxEntryBytes; size < wire.MaxRecordsBytes {
		if r := a.publish(key, string(make([]byte, size))); !errors.As(r.Err, &e) || e.Code != wire.CodeLimitExceeded {
			t.Errorf("a publish larger than an entry: %v", r.Err)
		}
	}
}

// When leadership is lost, what was handed to the replicas has an unknown outcome, and
// what was not has none: each is answered, once.
func TestLeadershipIsLostUnderPublishes(t *testing.T) {
	b := newBed(t, 1, nil)
	a := b.lead(0)
	key := b.openShard(a, 0, Opening{})
	a.pause(true)
	answers := b.publishMany(a, key, 10, 10)
	b.mu.Lock()
	b.leader = -1
	lost := b.entries[len(b.entries)-1].done
	b.entries[len(b.entries)-1].done = nil
	b.mu.Unlock()
	a.g.OnLeader(quorum.Leadership{Term: 1})
	lost.err = quorum.ErrOutcomeUnknown
	close(lost.done)
	for i, c := range answers {
		r := a.wait(c)
		var e *stream.Error
		if !errors.As(r.Err, &e) {
			t.Fatalf("publish %d: %v", i, r)
		}
		if unknown := errors.Is(r.Err, stream.ErrOutcomeUnknown); unknown != (i == 0) || unknown != (e.Retry == wire.RetryOutcomeUnknown) {
			t.Errorf("publish %d: %v", i, r.Err)
		}
		if i > 0 && !errors.Is(r.Err, stream.ErrNotLeader) {
			t.Errorf("publish %d was not proposed: %v", i, r.Err)
		}
	}
	for _, c := range answers {
		select {
		case r := <-c:
			t.Errorf("answered twice: %v", r)
		default:
		}
	}
}

// A group that is closed answers everything.
func TestCloseAnswersEverything(t *testing.T) {
	b := newBed(t, 1, nil)
	a := b.lead(0)
	key := b.openShard(a, 0, Opening{})
	s := a.shard(key)
	a.pause(true)
	answers := b.publishMany(a, key, 200, 1<<10)
	a.stop()
	late := make(chan stream.Result, 1)
	s.Publish(&stream.Publish{Records: region("late"), Done: func(r stream.Result) { late <- r }})
	for i, c := range append(answers, late) {
		if r := a.wait(c); !errors.Is(r.Err, stream.ErrOutcomeUnknown) && !errors.Is(r.Err, stream.ErrNotLeader) {
			t.Errorf("publish %d: %v", i, r)
		}
	}
}
