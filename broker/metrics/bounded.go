package metrics

import "maps"

// OtherStreams is the stream label of all streams that have no series of their
// own. No stream can have this name, as a name holds slashes.
const OtherStreams = "(other)"

// streamBook decides which streams have series of their own, and keeps their
// counters monotonic: what is exported for a label is the sum of what its
// streams gained from scrape to scrape while they were under it. Not safe for
// concurrent use.
type streamBook struct {
	max  int
	last map[string]counted // what each stream's own counters were at the last scrape
	own  map[string]counted // exported counters of streams with series of their own
	rest counted            // exported counters of OtherStreams

	restUsed bool // OtherStreams was exported once; it stays
}

// counted are a stream's counters.
type counted struct{ records, dropped uint64 }

func newStreamBook(limit int) *streamBook {
	return &streamBook{max: limit, last: map[string]counted{}, own: map[string]counted{}}
}

// streamSeries are the values to export under one stream label.
type streamSeries struct {
	counted
	logBytes, tailBytes int64
	subscriptions       int
	lagSum, lagMax      uint64
}

// scrape turns what the streams are into what is exported, by label. A stream
// keeps its series for as long as it exists; places that become free go to the
// next stream that comes along.
func (b *streamBook) scrape(streams []StreamState) map[string]*streamSeries {
	seen := make(map[string]counted, len(streams))
	for _, s := range streams {
		seen[s.Stream] = counted{records: s.Records, dropped: s.DroppedRecords}
	}
	maps.DeleteFunc(b.own, func(name string, _ counted) bool { _, ok := seen[name]; return !ok })

	out := make(map[string]*streamSeries, min(len(streams), b.max)+1)
	for _, s := range streams {
		now, before := seen[s.Stream], b.last[s.Stream]
		gained := counted{
			records: growth(before.records, now.records),
			dropped: growth(before.dropped, now.dropped),
		}
		label := b.label(s.Stream)
		series := out[label]
		if series == nil {
			series = &streamSeries{}
			out[label] = series
		}
		series.logBytes += s.LogBytes
		series.tailBytes += s.TailBytes
		if label == OtherStreams {
			b.rest = b.rest.plus(gained)
			b.restUsed = true
			continue
		}
		b.own[label] = b.own[label].plus(gained)
		series.counted = b.own[label]
	}
	if b.restUsed {
		if out[OtherStreams] == nil {
			out[OtherStreams] = &streamSeries{}
		}
		out[OtherStreams].counted = b.rest
	}
	b.last = seen
	return out
}

// label returns the label of a stream, giving it a place if there is one.
func (b *streamBook) label(stream string) string {
	if _, ok := b.own[stream]; ok {
		return stream
	}
	if len(b.own) >= b.max {
		return OtherStreams
	}
	b.own[stream] = counted{}
	return stream
}

// growth is how much a counter grew; one that fell was started again from zero.
func growth(before, now uint64) uint64 {
	if now < before {
		return now
	}
	return now - before
}

func (c counted) plus(d counted) counted {
	return counted{records: c.records + d.records, dropped: c.dropped + d.dropped}
}
