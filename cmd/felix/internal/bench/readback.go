package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"felix.dev/felix/client"
)

// readback compares a stream with what was acknowledged on it: each record is
// there once. A memory stream keeps its newest records only; the others are
// counted as expired.
type readback struct {
	pattern *pattern
	first   uint16 // number of the stream's first publisher
	// ordered says that each publisher's records must be in order: not if some were
	// refused and sent again.
	ordered bool
	seen    []bitset // one for each publisher
	next    []uint64

	account account
	expired int64
}

func newReadback(p *pattern, first uint16, counts []uint64, ordered bool) *readback {
	b := &readback{pattern: p, first: first, ordered: ordered, seen: make([]bitset, len(counts)), next: make([]uint64, len(counts))}
	for i, n := range counts {
		b.seen[i] = newBitset(n)
		b.account.Expected += int64(n)
	}
	return b
}

// readbackPatience is how long a read may take that should find something.
const readbackPatience = 20 * time.Second

// read reads the stream from start, the first offset of the run, until it has seen
// everything, or nothing comes any more.
func (b *readback) read(ctx context.Context, c *client.Client, stream client.Stream, start uint64) error {
	if b.account.Expected == 0 {
		return nil
	}
	cfg := client.SubscribeConfig{Start: client.At(start), NoReconnect: true}
	sub, err := c.Subscribe(ctx, stream, cfg)
	if gone := (*client.CursorError)(nil); errors.As(err, &gone) && gone.Reason == "too_old" {
		b.expired = int64(gone.Available - start)
		cfg.Start = client.At(gone.Available)
		sub, err = c.Subscribe(ctx, stream, cfg)
	}
	if err != nil {
		return fmt.Errorf("bench: read back: %w", err)
	}
	defer func() { _ = sub.Close() }()
	for got := int64(0); got < b.account.Expected-b.expired; {
		rctx, cancel := context.WithTimeout(ctx, readbackPatience)
		events, err := sub.NextBatch(rctx)
		cancel()
		if err != nil {
			if ctx.Err() == nil && rctx.Err() != nil {
				return nil // the account will not balance, and says by how much
			}
			return fmt.Errorf("bench: read back: %w", err)
		}
		got += int64(len(events))
		for i := range events {
			b.take(events[i].Payload)
		}
	}
	return nil
}

func (b *readback) take(payload []byte) {
	r, v := b.pattern.read(payload)
	p := int(r.publisher) - int(b.first)
	switch {
	case v == damaged:
		b.account.Damaged++
	case v == foreign || p < 0 || p >= len(b.seen) || !b.seen[p].has(r.seq):
		b.account.Foreign++
	case !b.seen[p].set(r.seq):
		b.account.Repeated++
	default:
		b.account.Delivered++
		if b.ordered && r.seq < b.next[p] {
			b.account.Disordered++
		}
		b.next[p] = max(b.next[p], r.seq+1)
	}
}

// close balances the account.
func (b *readback) close() account {
	a := b.account
	a.Unaccounted = a.Expected - b.expired - a.Delivered
	return a
}

// bitset is a set of the numbers below n.
type bitset struct {
	n     uint64
	words []uint64
}

func newBitset(n uint64) bitset { return bitset{n, make([]uint64, (n+63)/64)} }

// has says whether i can be in the set.
func (b *bitset) has(i uint64) bool { return i < b.n }

// set adds i, and says whether it is new.
func (b *bitset) set(i uint64) bool {
	word, bit := &b.words[i/64], uint64(1)<<(i%64)
	if *word&bit != 0 {
		return false
	}
	*word |= bit
	return true
}
