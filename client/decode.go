package client

import (
	"encoding/binary"
	"errors"
	"fmt"

	"felix.dev/felix/broker/wire"
)

// decoder turns the frames of one event stream into events and checks that no offset comes twice or is missing
// without a word. It has no goroutine and does no I/O.
type decoder struct {
	id uint64 // of the subscription
	// want is the offset that must come next, if known. It survives a resume: the next event stream goes on here.
	want  uint64
	known bool

	// The rest of a frame of which a part was handed out. It lies in the frame buffer.
	rest []byte
	left uint32
	// next is what the first event of rest gets, but for its payload.
	next Event
}

// ending is the last frame of an event stream.
type ending struct {
	lagged     bool
	resumeFrom uint64
	// addr is where the shard has gone, "" if not said.
	addr string
}

// decode appends events to dst until there are limit of them, no whole frame is left, or the stream's last frame
// comes; that one is left in the buffer while there are events in front of it. gap is called for each range of
// offsets that is missing.
func (d *decoder) decode(dst []Event, f *frameBuf, limit int, gap func(from, to uint64)) ([]Event, *ending, error) {
	for {
		dst = d.cut(dst, limit)
		if len(dst) >= limit {
			return dst, nil, nil
		}
		h, payload, ok, err := f.peek()
		if err != nil || !ok {
			return dst, nil, eventError(err)
		}
		if h.Flags == 0 {
			var end *ending
			if end, err = d.message(payload, gap); end != nil && len(dst) > 0 {
				return dst, nil, nil
			}
			if end != nil {
				f.consume(h)
				return dst, end, nil
			}
		} else {
			err = d.frame(h.Flags, payload, gap)
		}
		if err != nil {
			return dst, nil, eventError(err)
		}
		f.consume(h)
	}
}

func eventError(err error) error {
	if err == nil {
		return nil
	}
	return &ProtocolError{Where: whereEvent, Err: err}
}

// cut moves events from the rest of the frame. Its records were checked when the frame was decoded.
func (d *decoder) cut(dst []Event, limit int) []Event {
	for d.left > 0 && len(dst) < limit {
		n := 4 + int(binary.BigEndian.Uint32(d.rest))
		e := d.next
		e.Payload = d.rest[4:n:n]
		dst = append(dst, e)
		d.rest = d.rest[n:]
		d.left--
		d.next = Event{Offset: e.Offset + 1, HasOffset: e.HasOffset}
	}
	if d.left == 0 {
		d.rest = nil
	}
	return dst
}

// frame begins a binary event batch.
func (d *decoder) frame(flags wire.Flags, payload []byte, gap func(from, to uint64)) error {
	e, err := wire.DecodeEvents(flags, payload)
	if err != nil {
		return err
	}
	if e.HasTimes {
		return errors.New("event frame with times, which were not offered")
	}
	if e.Legacy && e.SubscriptionID != d.id {
		return fmt.Errorf("events of subscription %d on the stream of subscription %d", e.SubscriptionID, d.id)
	}
	return d.begin(e.Records, e.Base, e.HasOffsets, e.Skipped, gap)
}

// begin checks where a batch lies and makes it the rest.
func (d *decoder) begin(r wire.Records, base uint64, hasOffsets bool, skipped uint64, gap func(from, to uint64)) error {
	next := Event{Offset: base, HasOffset: hasOffsets, Skipped: skipped}
	switch {
	case !hasOffsets:
		if d.known {
			return fmt.Errorf("events without offsets, where offset %d is due", d.want)
		}
	case d.known && base < d.want:
		return fmt.Errorf("offset %d again, where %d is due", base, d.want)
	case d.known:
		// The offsets in front of the batch are skipped or lost. A subscription that began inside a run of skipped
		// ones is told all of them.
		next.Gap = base - d.want - min(skipped, base-d.want)
		if next.Gap > 0 {
			gap(d.want, d.want+next.Gap)
		}
	}
	if hasOffsets {
		d.known, d.want = true, base+uint64(r.Count)
	}
	d.rest, d.left, d.next = r.Bytes, r.Count, next
	return nil
}

// message reads a JSON frame: events in the form of old, or the stream's last frame, which changes nothing here.
func (d *decoder) message(payload []byte, gap func(from, to uint64)) (*ending, error) {
	m, err := wire.DecodeMessage(payload)
	if err != nil {
		return nil, err
	}
	switch m := m.(type) {
	case *wire.EventJSON:
		return nil, d.begin(wire.RecordsOf(m.Payload), deref(m.Offset), m.Offset != nil, 0, gap)
	case *wire.EventBatchJSON:
		return nil, d.begin(m.Records, deref(m.BaseOffset), m.BaseOffset != nil, 0, gap)
	case *wire.SubscriptionLagged:
		if m.SubscriptionID != d.id {
			return nil, fmt.Errorf("end of subscription %d on the stream of subscription %d", m.SubscriptionID, d.id)
		}
		return &ending{lagged: true, resumeFrom: m.ResumeFrom}, nil
	case *wire.ShardMoved:
		if m.SubscriptionID != d.id {
			return nil, fmt.Errorf("end of subscription %d on the stream of subscription %d", m.SubscriptionID, d.id)
		}
		return &ending{addr: m.Addr, resumeFrom: deref(m.ResumeFrom)}, nil
	}
	return nil, fmt.Errorf("message %q on an event stream", m.MessageType())
}

func deref(v *uint64) uint64 {
	if v == nil {
		return 0
	}
	return *v
}
