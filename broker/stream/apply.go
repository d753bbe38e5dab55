package stream

import (
	"encoding/binary"
	"fmt"

	"felix.dev/felix/broker/seglog"
	"felix.dev/felix/broker/wire"
)

// Apply appends what the replicas agreed on, in their order, and says for each batch
// what came of it; results has room for that. term and at (microseconds) are the same
// on every replica. What the log holds already is not written again. After an error
// nothing has changed, and the call is to be made again. One goroutine at a time
// applies.
//
// The first record of a term, unless it is the first of all, is a hidden one.
func (s *Shard) Apply(term uint64, at int64, batches []Batch, results []Result) error {
	if s.rep.sealed {
		for i := range batches {
			results[i] = Result{Err: closedError(EndDeleted)}
		}
		return nil
	}
	c := newClaim()
	defer c.release()
	s.admitBatches(c, term, batches, results)
	if len(c.publishes) == 0 {
		return nil
	}
	ring := s.rep.serving.Load()
	if ring && s.staging.end != s.next { // what came meanwhile is not in the ring
		s.tail.clear()
		s.staging = staging{end: s.next, at: s.tail.position()}
	}
	from, place := s.next, s.staging
	for i := 0; i < len(c.publishes); {
		i = s.stage(c, i, at, ring)
	}
	if err := s.appendNew(c.records); err != nil {
		s.producers.forget()
		if ring {
			s.tail.unstage(place.c, place.n)
		}
		s.next, s.staging = from, place
		return err
	}
	s.producers.keep()
	clear(s.rep.publishes) // they hold on to the records
	s.rep.term = term
	for _, f := range c.frames {
		s.tail.show(f.c, f.upTo, f.entries)
	}
	s.mark.Store(s.next)
	s.watchers.wake()
	return nil
}

// admitBatches answers batches that were sent again, refuses wrong ones and gives the
// others their offsets: they are the claim's publishes.
func (s *Shard) admitBatches(c *claim, term uint64, batches []Batch, results []Result) {
	r := s.rep
	if cap(r.publishes) < len(batches)+1 {
		r.publishes = make([]Publish, len(batches)+1)
	}
	r.publishes = r.publishes[:len(batches)+1]
	next := s.next
	if r.term != 0 && r.term != term {
		p := &r.publishes[len(batches)]
		*p = Publish{hidden: true, Records: wire.Records{Count: 1, Bytes: binary.BigEndian.AppendUint64(nil, term)}}
		c.publishes = append(c.publishes, p)
		next++
	}
	hidden := len(c.publishes)
	for i := range batches {
		b, p := &batches[i], &r.publishes[i]
		*p = Publish{Records: b.Records, HasProducer: b.HasProducer, Producer: b.Producer, Sequence: b.Sequence}
		if p.HasProducer {
			p.digest = digestOf(p.Records)
			first, err := s.producers.check(p)
			if err != nil {
				results[i] = Result{Err: err}
				continue
			}
			if first != nil {
				results[i] = Result{Offset: first.offset}
				continue
			}
		}
		p.offset = next
		next += uint64(p.Records.Count)
		if p.HasProducer {
			s.producers.hold(p)
		}
		results[i] = Result{Offset: p.offset}
		c.publishes = append(c.publishes, p)
	}
	if len(c.publishes) == hidden {
		c.publishes = c.publishes[:0]
	}
}

// appendNew writes those records that the log does not hold yet: after a restart the
// replicas' log is read again from a place before the end of the shard's own.
func (s *Shard) appendNew(records []seglog.Record) error {
	have := s.log.Next()
	for len(records) > 0 && records[0].Base+uint64(records[0].Count) <= have {
		records = records[1:]
	}
	if len(records) == 0 {
		return nil
	}
	if r := &records[0]; r.Base < have { // it was written together with less
		rest, err := wire.AppendFrom(nil, r.Frame, have)
		if err != nil {
			return fmt.Errorf("stream: %s shard %d: cut the record at %d to what is missing from %d: %w", s.cfg.Name, s.cfg.Shard, r.Base, have, err)
		}
		r.Count -= uint32(have - r.Base)
		r.Base, r.Frame, r.HasProducer = have, rest, false
	}
	return s.log.Append(records)
}
