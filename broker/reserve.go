package broker

import (
	"log/slog"
	"time"

	"felix.dev/felix/broker/catalog"
	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/wire"
)

const (
	// reserveEvery is how often memory shards are looked at. A shard would have to
	// take reserveAhead records in that time to catch up with its reservation.
	reserveEvery = 250 * time.Millisecond
	reserveAhead = 1 << 22
)

// keepReservations keeps every memory shard well below the offsets that the catalog
// has reserved for it. A stream whose reservation cannot be extended (a full disk) is
// refused to publishers before it reaches its mark, and served again when it can.
func (s *streams) keepReservations() {
	tick := time.NewTicker(reserveEvery)
	defer tick.Stop()
	marks := make(map[*stream.Shard]uint64)
	for {
		select {
		case <-s.stop:
			return
		case <-tick.C:
		}
		live := make(map[*stream.Shard]uint64, len(marks))
		for _, v := range *s.byName.Load() {
			if v.entry.Spec.Durability == catalog.Memory && v.stream != nil {
				s.keepReservation(v, marks, live)
			}
		}
		marks = live
	}
}

// keepReservation looks at one stream. marks are the reservations known before, live
// those known now.
func (s *streams) keepReservation(v *served, marks, live map[*stream.Shard]uint64) {
	var failure error
	for i, k := range v.shards {
		mark, ok := marks[k.Shard]
		if !ok && i < len(v.entry.Reserved) {
			mark = v.entry.Reserved[i]
		}
		if at := k.Mark(); mark < at+reserveAhead {
			next, err := s.catalog.Reserve(v.entry.Spec.Name, uint32(i), at+reserveAhead)
			if err != nil {
				failure = err
			} else {
				mark = next
			}
		}
		live[k.Shard] = mark
	}
	if (failure != nil) == (v.refusal != nil) {
		return
	}
	s.refuseReservation(v, failure)
}

// refuseReservation starts or ends the refusal of a stream without reservation.
func (s *streams) refuseReservation(v *served, failure error) {
	s.changing.Lock()
	defer s.changing.Unlock()
	if current, err := s.lookup(v.entry.Spec.Name); s.closed || err != nil || current != v || v.stream == nil {
		return // changed meanwhile: the next look sees what is there then
	}
	next := *v
	next.refusal, next.problem = nil, ""
	if failure != nil {
		next.problem = failure.Error()
		next.refusal = &stream.Error{
			Code: wire.CodeOverloaded, Retry: wire.RetryAfter, RetryAfter: time.Second, Reason: "storage",
			Message: "offsets cannot be reserved now", Err: failure,
		}
		s.log.Error("memory stream refused: its offsets cannot be reserved", slog.String("stream", v.entry.Spec.Name.String()), slog.Any("error", failure))
	}
	s.publish(v.entry.Spec.Name, &next)
}
