package fakebroker

import (
	"bytes"
	"context"
	"crypto/sha256"
	"sync"

	"felix.dev/felix/broker/wire"
)

// Store keeps the records of streams. A stream comes into being when it is used.
type Store struct {
	mu     sync.Mutex
	shards map[ShardKey]*shard // guarded by mu, as is everything below
	moved  chan struct{}       // closed when anything changes
}

// ShardKey names a shard.
type ShardKey struct {
	Namespace, Stream string
	Shard             uint32
}

type shard struct {
	oldest    uint64
	records   [][]byte // from oldest on; nil: an offset that holds no event
	producers map[uint64]*producer
}

type producer struct {
	next    uint64
	batches []stored // the last 64
}

type stored struct {
	sequence, offset uint64
	digest           [32]byte
}

// NewStore makes an empty Store.
func NewStore() *Store { return &Store{shards: map[ShardKey]*shard{}, moved: make(chan struct{})} }

func (st *Store) shard(k ShardKey) *shard {
	sh := st.shards[k]
	if sh == nil {
		sh = &shard{producers: map[uint64]*producer{}}
		st.shards[k] = sh
	}
	return sh
}

func (st *Store) changed() {
	close(st.moved)
	st.moved = make(chan struct{})
}

func (st *Store) wake() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.changed()
}

// Append adds records and returns the offset of the first.
func (st *Store) Append(k ShardKey, records ...[]byte) uint64 {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.append(k, records)
}

func (st *Store) append(k ShardKey, records [][]byte) uint64 {
	sh := st.shard(k)
	first := sh.oldest + uint64(len(sh.records))
	for _, r := range records {
		sh.records = append(sh.records, append([]byte{}, r...))
	}
	st.changed()
	return first
}

// Hide adds an offset that holds no event.
func (st *Store) Hide(k ShardKey) {
	st.mu.Lock()
	defer st.mu.Unlock()
	sh := st.shard(k)
	sh.records = append(sh.records, nil)
	st.changed()
}

// Trim drops everything below an offset.
func (st *Store) Trim(k ShardKey, oldest uint64) {
	st.mu.Lock()
	defer st.mu.Unlock()
	sh := st.shard(k)
	sh.records = sh.records[oldest-sh.oldest:]
	sh.oldest = oldest
}

// Records returns what a shard holds, from its oldest record on.
func (st *Store) Records(k ShardKey) []string {
	st.mu.Lock()
	defer st.mu.Unlock()
	var out []string
	for _, r := range st.shard(k).records {
		out = append(out, string(r))
	}
	return out
}

// ForgetProducers drops what is known of idempotent producers.
func (st *Store) ForgetProducers() {
	st.mu.Lock()
	defer st.mu.Unlock()
	for _, sh := range st.shards {
		sh.producers = map[uint64]*producer{}
	}
}

func (st *Store) bounds(k ShardKey) (oldest, end uint64) {
	st.mu.Lock()
	defer st.mu.Unlock()
	sh := st.shard(k)
	return sh.oldest, sh.oldest + uint64(len(sh.records))
}

// appendIdempotent is what the leader of a shard does with a numbered batch.
func (st *Store) appendIdempotent(k ShardKey, id, sequence uint64, records [][]byte) (uint64, *wire.RefusedReason) {
	st.mu.Lock()
	defer st.mu.Unlock()
	sh := st.shard(k)
	p := sh.producers[id]
	if p == nil {
		if sequence != 0 {
			return 0, &wire.RefusedReason{Kind: wire.RefusedUnknown}
		}
		p = &producer{}
		sh.producers[id] = p
	}
	digest := sha256.Sum256(bytes.Join(records, []byte{0}))
	switch {
	case sequence > p.next:
		return 0, &wire.RefusedReason{Kind: wire.RefusedGap, Expected: p.next}
	case sequence < p.next:
		for _, b := range p.batches {
			if b.sequence == sequence && b.digest != digest {
				return 0, &wire.RefusedReason{Kind: wire.RefusedReused}
			}
			if b.sequence == sequence {
				return b.offset, nil
			}
		}
		return 0, &wire.RefusedReason{Kind: wire.RefusedExpired}
	}
	p.next++
	offset := st.append(k, records)
	p.batches = append(p.batches, stored{sequence, offset, digest})
	if len(p.batches) > 64 {
		p.batches = p.batches[1:]
	}
	return offset, nil
}

// run is a piece of a shard without a hole.
type run struct {
	skipped uint64
	base    uint64
	records [][]byte
}

// read waits for records from an offset on. It returns false when ctx ends.
func (st *Store) read(ctx context.Context, k ShardKey, from uint64) (run, bool) {
	for {
		st.mu.Lock()
		moved := st.moved
		sh := st.shard(k)
		r := run{base: from}
		for i := int(from - sh.oldest); i < len(sh.records) && len(r.records) < 64; i++ {
			if sh.records[i] != nil {
				r.records = append(r.records, sh.records[i])
			} else if len(r.records) > 0 {
				break
			} else {
				r.skipped++
				r.base++
			}
		}
		st.mu.Unlock()
		if ctx.Err() != nil {
			return run{}, false
		}
		if len(r.records) > 0 {
			return r, true
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return run{}, false
		}
	}
}
