package history

import (
	"cmp"
	"slices"
)

// interval is an operation that stands somewhere in a log and took from call to done.
type interval struct {
	// at orders intervals: 2*offset+1 for a record, and 2*offset for a reader that begins in front of it.
	at         uint64
	call, done int64
	what       string
	reader     bool
}

func (i interval) offset() uint64 { return i.at / 2 }

// checkRealTime looks for operations that are over before another one begins and stand behind it all the same.
//
// An append is over when it is acknowledged or when anybody has been given it, whichever is first.
func checkRealTime(h History, f *findings) {
	for shard, ops := range intervals(h) {
		// From the end: the earliest end of all that stand behind.
		slices.SortFunc(ops, func(a, b interval) int { return cmp.Compare(b.at, a.at) })
		first := interval{done: Never}
		for i := 0; i < len(ops); {
			j := i
			for ; j < len(ops) && ops[j].at == ops[i].at; j++ {
				if ops[j].call > first.done {
					f.add(Reordered, shard, "%s began after %s was over, and stands in front of it: offset %d before %d",
						ops[j].what, first.what, ops[j].offset(), first.offset())
				}
			}
			for ; i < j; i++ {
				if ops[i].done < first.done {
					first = ops[i]
				}
			}
		}
	}
}

// spot is an offset of a shard.
type spot struct {
	shard  Shard
	offset uint64
}

// intervals lists, by shard, what has an offset and a time.
func intervals(h History) map[Shard][]interval {
	seen := firstSeen(h)
	found := found(h)
	all := map[Shard][]interval{}
	for _, p := range h.Publishes {
		source, known := h.Sources[p.ID.Source]
		if !known || source.Repeats {
			continue
		}
		offset, done := p.Offset, p.Return
		if p.Outcome != Acked {
			at, there := found[p.ID]
			if !there {
				continue // it never happened
			}
			offset, done = at, Never
		}
		if at, given := seen[spot{source.Shard, offset}]; given {
			done = min(done, at)
		}
		all[source.Shard] = append(all[source.Shard], interval{at: 2*offset + 1, call: p.Call, done: done, what: p.ID.String()})
	}
	for i := range h.Readers {
		if r := &h.Readers[i]; r.Latest {
			all[r.Shard] = append(all[r.Shard], interval{at: 2 * r.Start, call: r.Call, done: r.Return, what: "reader " + r.Name, reader: true})
		}
	}
	return all
}

// firstSeen is when an offset was first given to anybody.
func firstSeen(h History) map[spot]int64 {
	seen := map[spot]int64{}
	for i := range h.Readers {
		r := &h.Readers[i]
		for _, d := range r.Deliveries {
			k := spot{r.Shard, d.Offset}
			if before, known := seen[k]; !known || d.At < before {
				seen[k] = d.At
			}
		}
	}
	return seen
}

// found is where records are that somebody was given.
func found(h History) map[ID]uint64 {
	at := map[ID]uint64{}
	for i := range h.Readers {
		for _, d := range h.Readers[i].Deliveries {
			at[d.ID] = d.Offset
		}
	}
	for _, final := range h.Finals {
		for o, id := range final.Records {
			at[id] = o
		}
	}
	return at
}
