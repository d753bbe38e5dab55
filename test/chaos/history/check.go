package history

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Check holds everything against everything.
func Check(h History) []Violation {
	f := &findings{}
	for _, b := range books(h, f) {
		b.check(f)
	}
	checkReaders(h, f)
	checkRealTime(h, f)
	checkLinear(h, f, linearTime)
	return f.list
}

// linearTime bounds the search for a linearization of a shard.
const linearTime = 20 * time.Second

// place is where somebody says that a record is.
type place struct {
	offset uint64
	who    string
}

// book is what is said of one shard.
type book struct {
	shard Shard
	// at is which record is at an offset, and where is the reverse.
	at    map[uint64]ID
	says  map[uint64]string // who said so first
	where map[ID][]place
	// publishes by record; sources whose order is held.
	publishes map[ID]*Publish
	sources   map[uint32]Source
	finals    []Final
}

// books sorts a history by shards. What belongs to none is a finding.
func books(h History, f *findings) []*book {
	all := map[Shard]*book{}
	of := func(s Shard) *book {
		b := all[s]
		if b == nil {
			b = &book{
				shard: s, at: map[uint64]ID{}, says: map[uint64]string{}, where: map[ID][]place{},
				publishes: map[ID]*Publish{}, sources: map[uint32]Source{},
			}
			all[s] = b
		}
		return b
	}
	for n, s := range h.Sources {
		of(s.Shard).sources[n] = s
	}
	for i := range h.Publishes {
		p := &h.Publishes[i]
		s, known := h.Sources[p.ID.Source]
		if !known {
			f.add(Foreign, Shard{}, "%s was published, and nobody knows the source", p.ID)
			continue
		}
		of(s.Shard).publishes[p.ID] = p
	}
	for i := range h.Publishes {
		if p := &h.Publishes[i]; p.Outcome == Acked {
			of(h.Sources[p.ID.Source].Shard).put(f, p.Offset, p.ID, "an acknowledgement")
		}
	}
	for i := range h.Readers {
		r := &h.Readers[i]
		b := of(r.Shard)
		for _, d := range r.Deliveries {
			b.put(f, d.Offset, d.ID, "reader "+r.Name)
		}
	}
	for _, final := range h.Finals {
		b := of(final.Shard)
		b.finals = append(b.finals, final)
		for _, o := range slices.Sorted(maps.Keys(final.Records)) {
			b.put(f, o, final.Records[o], "the final log of "+final.Via)
		}
	}
	shards := slices.SortedFunc(maps.Keys(all), compareShards)
	sorted := make([]*book, len(shards))
	for i, s := range shards {
		sorted[i] = all[s]
	}
	return sorted
}

// put takes down that somebody says that a record is at an offset.
func (b *book) put(f *findings, offset uint64, id ID, who string) {
	before, taken := b.at[offset]
	switch {
	case !taken:
		b.at[offset], b.says[offset] = id, who
		b.where[id] = append(b.where[id], place{offset, who})
	case before != id:
		f.add(Split, b.shard, "offset %d holds %s, says %s; it holds %s, says %s", offset, id, who, before, b.says[offset])
		b.where[id] = append(b.where[id], place{offset, who})
	}
}

func (b *book) check(f *findings) {
	b.checkRecords(f)
	b.checkOrder(f)
	for _, final := range b.finals {
		b.checkFinal(f, final)
	}
}

// checkRecords looks at each record that somebody has seen.
func (b *book) checkRecords(f *findings) {
	for _, o := range slices.Sorted(maps.Keys(b.at)) {
		id := b.at[o]
		p, published := b.publishes[id]
		switch {
		case !published:
			f.add(Foreign, b.shard, "%s is at offset %d, says %s, and was not published to this shard", id, o, b.says[o])
		case p.Outcome == Refused:
			f.add(Reappeared, b.shard, "%s was refused and is at offset %d, says %s", id, o, b.says[o])
		}
	}
	for id, places := range b.where {
		first := places[0]
		for _, p := range places[1:] {
			if p.offset != first.offset && !b.sources[id.Source].Repeats {
				f.add(Repeated, b.shard, "%s is at offset %d, says %s, and at %d, says %s", id, first.offset, first.who, p.offset, p.who)
			}
		}
	}
}

// checkOrder looks at the order of each source's records.
func (b *book) checkOrder(f *findings) {
	last := map[uint32]ID{}
	for _, o := range slices.Sorted(maps.Keys(b.at)) {
		id := b.at[o]
		if s := b.sources[id.Source]; s.Repeats || s.Unordered {
			continue
		}
		if before := last[id.Source]; id.Number < before.Number {
			f.add(Reordered, b.shard, "%s is at offset %d, behind %s", id, o, before)
		}
		last[id.Source] = id
	}
}

// checkFinal looks for what has to be in a final log.
func (b *book) checkFinal(f *findings, final Final) {
	if final.Forgets {
		return
	}
	for _, o := range slices.Sorted(maps.Keys(b.at)) {
		if o < final.Oldest {
			continue
		}
		if _, there := final.Records[o]; there {
			continue // put has compared them
		}
		id := b.at[o]
		p := b.publishes[id]
		how := "was read"
		switch acked := p != nil && p.Outcome == Acked && p.Offset == o; {
		case acked:
			how = "was acknowledged"
		case o >= final.End:
			continue // it came after the log was read
		}
		f.add(Lost, b.shard, "%s %s at offset %d and is not in the final log of %s, which has [%d,%d)", id, how, o, final.Via, final.Oldest, final.End)
	}
}

// Tally counts what a history holds, for the log of a test.
func Tally(h History) string {
	var acked, refused, unknown, delivered int
	for _, p := range h.Publishes {
		switch p.Outcome {
		case Acked:
			acked++
		case Refused:
			refused++
		case Unknown:
			unknown++
		}
	}
	for _, r := range h.Readers {
		delivered += len(r.Deliveries)
	}
	return fmt.Sprintf("%d published: %d acknowledged, %d refused, %d of unknown outcome; %d delivered to %d readers",
		len(h.Publishes), acked, refused, unknown, delivered, len(h.Readers))
}
