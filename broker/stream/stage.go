package stream

import (
	"felix.dev/felix/broker/seglog"
	"felix.dev/felix/broker/wire"
)

// staging is where the next frame goes: the ring's end as the sequencer sees it,
// ahead of what readers see.
type staging struct {
	c   *chunk
	n   int    // bytes staged in c
	end uint64 // offset after the last staged record
	at  position
}

// stage encodes one frame from publish i on: as many small plain publishes as the
// batch bounds allow, or one idempotent publish, whose record must stay its own. Without
// ring the frame goes to the log only.
func (s *Shard) stage(c *claim, i int, now int64, ring bool) (after int) {
	first := c.publishes[i]
	if first.hidden {
		s.next++
		if s.log != nil {
			c.records = append(c.records, seglog.Record{Kind: seglog.KindGenerationStart, Base: s.next - 1, Count: 1, TimeMicros: now, Frame: first.Records.Bytes})
		}
		return i + 1
	}
	count, bytes := first.Records.Count, len(first.Records.Bytes)
	j := i + 1
	for ; j < len(c.publishes) && !first.HasProducer; j++ {
		p := c.publishes[j]
		if p.HasProducer || p.hidden || int(count+p.Records.Count) > s.cfg.BatchEvents || bytes+len(p.Records.Bytes) > s.cfg.BatchBytes {
			break
		}
		count += p.Records.Count
		bytes += len(p.Records.Bytes)
	}
	size := wire.OffsetFrameOverhead + bytes
	var k *chunk
	var b []byte
	if ring {
		k, b = s.tail.room(s.next, size, s.staging)
	} else {
		b = c.room(size)
	}
	b = wire.BeginOffsetFrame(b, s.next, count, bytes)
	for _, p := range c.publishes[i:j] {
		b = append(b, p.Records.Bytes...)
	}
	if s.log != nil {
		c.records = append(c.records, seglog.Record{
			Kind: seglog.KindEvents, Base: s.next, Count: count, TimeMicros: now,
			HasProducer: first.HasProducer, Producer: first.Producer, Sequence: first.Sequence, Frame: b,
		})
	}
	s.next += uint64(count)
	if !ring {
		return j
	}
	s.staging = staging{c: k, n: k.staged, end: s.next, at: s.staging.at.plus(1, size)}
	if n := len(c.frames); n > 0 && c.frames[n-1].c == k {
		c.frames[n-1] = staged{k, k.staged, c.frames[n-1].entries + 1}
	} else {
		c.frames = append(c.frames, staged{k, k.staged, 1})
	}
	return j
}
