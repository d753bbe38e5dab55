package stream

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/cespare/xxhash/v2"

	"felix.dev/felix/broker/wire"
)

const (
	// rememberedBatches is how far back a producer's re-sent batch is recognised.
	rememberedBatches = 64
	// maxProducers bounds a shard's memory of producers; the longest silent goes first.
	maxProducers = 4096

	producersVersion = 1
)

var errProducersState = errors.New("stream: idempotent producers: state cannot be read")

// batchMark is what is remembered of one idempotent batch.
type batchMark struct {
	offset uint64
	count  uint32
	digest uint64
}

func (b batchMark) end() uint64 { return b.offset + uint64(b.count) }

// producer is one producer's place in a shard: next is the sequence expected, and
// batches holds the last ones, oldest first, so that batches[i] has sequence
// next-len(batches)+i.
type producer struct {
	next    uint64
	batches []batchMark
	used    uint64 // offset of the last batch: orders producers by silence
}

// producers answers "was this batch written already?". It has no lock: the
// sequencer owns it, and recovery before there is a sequencer.
type producers struct {
	byID    map[uint64]*producer
	pending []pendingBatch // of the claim under way, not yet in the log
	changes uint64         // of byID
}

type pendingBatch struct {
	id, sequence uint64
	mark         batchMark
}

func newProducers() *producers { return &producers{byID: make(map[uint64]*producer)} }

func digestOf(r wire.Records) uint64 { return xxhash.Sum64(r.Bytes) ^ uint64(r.Count)<<32 }

// check says what to do with p: append it (nil, nil), answer it with an earlier
// batch, or refuse it.
func (ps *producers) check(p *Publish) (*batchMark, error) {
	for i := len(ps.pending) - 1; i >= 0; i-- {
		k := &ps.pending[i]
		if k.id != p.Producer {
			continue
		}
		if p.Sequence == k.sequence {
			return k.mark.match(p)
		}
		if p.Sequence == k.sequence+1 {
			return nil, nil
		}
		if p.Sequence > k.sequence {
			return nil, &RefusedError{Reason: SequenceGap, Expected: k.sequence + 1}
		}
	}
	known := ps.byID[p.Producer]
	if known == nil {
		if p.Sequence != 0 {
			return nil, &RefusedError{Reason: UnknownProducer}
		}
		return nil, nil
	}
	switch behind := known.next - p.Sequence; {
	case p.Sequence == known.next:
		return nil, nil
	case p.Sequence > known.next:
		return nil, &RefusedError{Reason: SequenceGap, Expected: known.next}
	case behind > uint64(len(known.batches)):
		return nil, &RefusedError{Reason: SequenceExpired}
	default:
		return known.batches[uint64(len(known.batches))-behind].match(p)
	}
}

func (b *batchMark) match(p *Publish) (*batchMark, error) {
	if b.digest != p.digest || b.count != p.Records.Count {
		return nil, &RefusedError{Reason: SequenceReused, Offset: b.offset}
	}
	return b, nil
}

// hold notes a batch of the claim under way; keep or forget follows.
func (ps *producers) hold(p *Publish) {
	ps.pending = append(ps.pending, pendingBatch{p.Producer, p.Sequence, batchMark{p.offset, p.Records.Count, p.digest}})
}

// keep makes the held batches part of the state: they are in the log.
func (ps *producers) keep() {
	for _, k := range ps.pending {
		ps.record(k.id, k.sequence, k.mark)
	}
	ps.pending = ps.pending[:0]
}

// forget drops the held batches: their append failed.
func (ps *producers) forget() { ps.pending = ps.pending[:0] }

// record is idempotent, so that recovery may see a batch twice.
func (ps *producers) record(id, sequence uint64, b batchMark) {
	k := ps.byID[id]
	if k == nil {
		if len(ps.byID) >= maxProducers {
			ps.evict()
		}
		k = &producer{next: sequence}
		ps.byID[id] = k
	}
	if sequence < k.next {
		return
	}
	ps.changes++
	if sequence > k.next { // an older part of the log is gone
		k.batches = k.batches[:0]
	}
	if len(k.batches) == rememberedBatches {
		k.batches = append(k.batches[:0], k.batches[1:]...)
	}
	k.batches = append(k.batches, b)
	k.next = sequence + 1
	k.used = b.offset
}

func (ps *producers) evict() {
	var victim uint64
	oldest := ^uint64(0)
	for id, k := range ps.byID {
		if k.used < oldest {
			oldest, victim = k.used, id
		}
	}
	delete(ps.byID, victim)
}

// snapshot encodes the state without the claim under way: the same state as the same bytes.
func (ps *producers) snapshot() []byte {
	b := binary.LittleEndian.AppendUint32([]byte{producersVersion}, uint32(len(ps.byID)))
	for _, id := range slices.Sorted(maps.Keys(ps.byID)) {
		k := ps.byID[id]
		b = binary.LittleEndian.AppendUint64(b, id)
		b = binary.LittleEndian.AppendUint64(b, k.next)
		b = append(b, byte(len(k.batches)))
		for _, m := range k.batches {
			b = binary.LittleEndian.AppendUint64(b, m.offset)
			b = binary.LittleEndian.AppendUint32(b, m.count)
			b = binary.LittleEndian.AppendUint64(b, m.digest)
		}
	}
	return b
}

// restore replaces the state by a snapshot.
func (ps *producers) restore(b []byte) error {
	const entry, batch = 17, 20
	if len(b) < 5 || b[0] != producersVersion {
		return fmt.Errorf("%w: no version %d header", errProducersState, producersVersion)
	}
	n := binary.LittleEndian.Uint32(b[1:])
	b = b[5:]
	byID := make(map[uint64]*producer, min(n, maxProducers))
	for range n {
		if len(b) < entry {
			return fmt.Errorf("%w: cut short", errProducersState)
		}
		id, k := binary.LittleEndian.Uint64(b), &producer{next: binary.LittleEndian.Uint64(b[8:])}
		count := int(b[16])
		b = b[entry:]
		if len(b) < count*batch || count > rememberedBatches {
			return fmt.Errorf("%w: cut short", errProducersState)
		}
		for range count {
			m := batchMark{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint32(b[8:]), binary.LittleEndian.Uint64(b[12:])}
			k.batches = append(k.batches, m)
			k.used = m.offset
			b = b[batch:]
		}
		byID[id] = k
	}
	ps.byID = byID
	return nil
}
