package wire

import (
	"encoding/binary"
	"iter"
	"math"
	"unicode/utf8"
)

// Events is a binary event batch. Byte slices are sub-slices of the payload.
// Record i has offset Base+i: a batch never spans a hole.
type Events struct {
	Legacy         bool // names its subscription in front
	SubscriptionID uint64

	HasOffsets bool
	Base       uint64

	HasSkipped bool   // needs HasOffsets
	Skipped    uint64 // offsets directly before Base that hold no event

	HasPublisher bool
	Publisher    []byte // at most 255 bytes of UTF-8

	// HasTimes changes the region: each record in Records.Bytes is then
	// {u64 time, u32 length, payload}. Each reads both forms; Records.All and
	// Records.CheckSizes read only the one without times.
	HasTimes bool
	Records  Records
}

// Event is one record of a batch.
type Event struct {
	Payload    []byte
	TimeMicros uint64 // append time since the Unix epoch, 0 without times
}

// DecodeEvents reads the payload of an event frame. It does not allocate.
func DecodeEvents(f Flags, payload []byte) (Events, error) {
	kind, err := f.Kind()
	if err != nil {
		return Events{}, err
	}
	if kind != KindEvents && kind != KindEventsLegacy {
		return Events{}, flagsErr(f, "not an event frame")
	}
	var e Events
	c := cursor{b: payload}
	if kind == KindEventsLegacy {
		e.Legacy = true
		e.SubscriptionID = c.u64("subscription id")
	}
	if f.Has(FlagEventOffsets) {
		e.HasOffsets = true
		e.Base = c.u64("base offset")
	}
	if f.Has(FlagEventSkipped) {
		e.HasSkipped = true
		e.Skipped = c.u64("skipped")
	}
	if f.Has(FlagEventPublisher) {
		e.HasPublisher = true
		e.Publisher = c.take(int(c.u8("publisher")), "publisher")
		if c.bad == "" && !utf8.Valid(e.Publisher) {
			c.bad = "publisher"
		}
	}
	e.Records.Count = c.u32("count")
	e.Records.Bytes = c.b
	overhead := recordOverhead
	if f.Has(FlagEventTimes) {
		e.HasTimes = true
		overhead = timedRecordOverhead
	}
	switch {
	case c.bad != "":
		return Events{}, malformed("events", "bad "+c.bad)
	case e.Base > math.MaxUint64-uint64(e.Records.Count):
		return Events{}, malformed("events", "offsets run past 64 bits")
	case e.Skipped > e.Base:
		return Events{}, malformed("events", "more offsets skipped than there are before the batch")
	}
	if err := checkRecords(e.Records.Count, c.b, overhead); err != nil {
		return Events{}, err
	}
	return e, nil
}

// Each yields the index and event of each record; payloads are sub-slices.
func (e Events) Each() iter.Seq2[int, Event] {
	overhead := recordOverhead
	if e.HasTimes {
		overhead = timedRecordOverhead
	}
	return func(yield func(int, Event) bool) {
		b := e.Records.Bytes
		for i := range int(e.Records.Count) {
			p, rest, ok := cutRecord(b, overhead)
			if !ok {
				return
			}
			ev := Event{Payload: p}
			if overhead == timedRecordOverhead {
				ev.TimeMicros = binary.BigEndian.Uint64(b)
			}
			if !yield(i, ev) {
				return
			}
			b = rest
		}
	}
}

// AppendTimedRecord appends one record to the region of a batch with times.
func AppendTimedRecord(dst []byte, micros uint64, payload []byte) []byte {
	dst = binary.BigEndian.AppendUint64(dst, micros)
	return AppendRecord(dst, payload)
}

// AppendEvents appends the whole frame. HasSkipped without HasOffsets is left
// out, as no peer accepts it.
func AppendEvents(dst []byte, e *Events) []byte {
	f := FlagEvents
	n := 4 + len(e.Records.Bytes)
	publisher := ""
	if e.Legacy {
		f = FlagEventsLegacy
		n += 8
	}
	if e.HasOffsets {
		f |= FlagEventOffsets
		n += 8
		if e.HasSkipped {
			f |= FlagEventSkipped
			n += 8
		}
	}
	if e.HasPublisher {
		f |= FlagEventPublisher
		publisher = clip(string(e.Publisher), math.MaxUint8)
		n += 1 + len(publisher)
	}
	if e.HasTimes {
		f |= FlagEventTimes
	}
	dst = AppendHeader(dst, f, n)
	if e.Legacy {
		dst = binary.BigEndian.AppendUint64(dst, e.SubscriptionID)
	}
	if f.Has(FlagEventOffsets) {
		dst = binary.BigEndian.AppendUint64(dst, e.Base)
	}
	if f.Has(FlagEventSkipped) {
		dst = binary.BigEndian.AppendUint64(dst, e.Skipped)
	}
	if f.Has(FlagEventPublisher) {
		dst = append(dst, byte(len(publisher)))
		dst = append(dst, publisher...)
	}
	dst = binary.BigEndian.AppendUint32(dst, e.Records.Count)
	return append(dst, e.Records.Bytes...)
}
