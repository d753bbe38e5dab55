package wire

import (
	"errors"
	"math"
	"runtime"
	"strings"
	"testing"
)

// allocated is what f allocates. The tests of this package do not run in
// parallel, so nothing else allocates much.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestB53CountsFromTheWire: B53. Small frames that claim up to 2^32-1 records,
// and offsets that overflow, are refused at the cost of an error value.
func TestB53CountsFromTheWire(t *testing.T) {
	region := RecordsOf([]byte("hello")).Bytes
	publish := append([]byte{0, 1, 't', 0, 1, 'n', 0, 1, 's', 0, 0, 0, 1}, region...)
	events := append([]byte{0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 1}, region...)
	timed := append([]byte{0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0}, region...)
	legacy := append([]byte{0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 1}, region...)
	overflow := make([]byte, 16)
	for i := range 8 {
		overflow[i] = 0xff
	}
	skipped := append([]byte{0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 1}, region...)

	refused := func(err error) {
		t.Helper()
		if !errors.Is(err, ErrMalformed) {
			t.Errorf("error %v", err)
		}
	}
	for _, count := range []uint32{0, 2, 100, 1 << 20, math.MaxInt32, math.MaxInt32 + 1, math.MaxUint32} {
		n := allocated(func() {
			_, err := DecodePublish(FlagPublish, withCount(publish, 9, count))
			refused(err)
			_, err = DecodeEvents(FlagEvents|FlagEventOffsets, withCount(events, 8, count))
			refused(err)
			_, err = DecodeEvents(FlagEvents|FlagEventTimes, withCount(timed, 0, count))
			refused(err)
			_, err = DecodeEvents(FlagEventsLegacy, withCount(legacy, 8, count))
			refused(err)
			frame := append(BeginOffsetFrame(nil, 1, count, len(region)), region...)
			_, err = AppendFrom(nil, frame, 2)
			refused(err)
		})
		if n > 16<<10 {
			t.Errorf("count %d: %d bytes allocated", count, n)
		}
	}
	overflow[11] = 1
	_, err := DecodeEvents(FlagEvents|FlagEventOffsets, overflow)
	refused(err)
	_, err = DecodeEvents(FlagEvents|FlagEventOffsets|FlagEventSkipped, skipped)
	refused(err)
	_, err = PeekOffsetFrame(BeginOffsetFrame(nil, math.MaxUint64, 1, 4))
	refused(err)
}

// TestB53JSON: B53. Large JSON made to become much larger structures is decoded
// or refused within a small multiple of its own size.
func TestB53JSON(t *testing.T) {
	const size = 1 << 20
	fill := func(s string) string { return strings.Repeat(s, size/len(s)) }
	names := `"tenant_id":"t","namespace":"n","stream":"s"`
	for name, in := range map[string]string{
		"empty payloads":    `{"type":"publish_batch",` + names + `,"payloads":[""` + fill(`,""`) + `]}`,
		"null payloads":     `{"type":"publish_batch",` + names + `,"payloads":[null` + fill(`,null`) + `]}`,
		"idempotent":        `{"type":"publish_idempotent",` + names + `,"request_id":1,"producer_id":1,"sequence":1,"payloads":[""` + fill(`,""`) + `]}`,
		"one payload":       `{"type":"publish",` + names + `,"payload":"` + fill("AAAA") + `"}`,
		"brokers":           `{"type":"topology_view","brokers":[{}` + fill(`,{}`) + `]}`,
		"brokers, case":     `{"type":"topology_view","brokers":[],"BROKERS":[{}` + fill(`,{}`) + `]}`,
		"brokers, null":     `{"type":"topology_view","brokers":[{"node_id":null,"addr":""}` + fill(`,{}`) + `]}`,
		"owners":            `{"type":"shard_owners_view","request_id":1,"owners":[{}` + fill(`,{}`) + `]}`,
		"ports":             `{"type":"auth_ok","server_flags":1,"listener_ports":[0` + fill(`,0`) + `]}`,
		"unknown fields":    `{"type":"ok","x":[0` + fill(`,[]`) + `]}`,
		"many fields":       `{"type":"ok"` + fill(`,"a":{}`) + `}`,
		"unknown type":      `{"type":"nothing","x":[0` + fill(`,{"a":[]}`) + `]}`,
		"long type":         `{"type":"` + fill("x") + `"}`,
		"long number":       `{"type":"producer_init","request_id":1` + fill("0") + `}`,
		"deep":              fill("["),
		"deep in an object": `{"type":"ok","x":` + fill(`{"x":`),
		"long start":        `{"type":"subscribe",` + names + `,"start":"` + fill("x") + `"}`,
		"long ack mode":     `{"type":"publish",` + names + `,"payload":"","ack":"` + fill("x") + `"}`,
	} {
		var m Message
		var err error
		n := allocated(func() { m, err = DecodeMessage([]byte(in)) })
		if limit := uint64(8 * len(in)); n > limit { // with what a growing slice leaves behind
			t.Errorf("%s: %d bytes for %d", name, n, len(in))
		}
		if err != nil && (!errors.Is(err, ErrMalformed) || len(err.Error()) > 400) {
			t.Errorf("%s: error of %d bytes: %.100v", name, len(err.Error()), err)
		}
		if (m == nil) == (err == nil) {
			t.Errorf("%s: %T and %v", name, m, err)
		}
		if u, ok := m.(*Unknown); ok {
			if got := len(AppendMessage(nil, UnsupportedFor(u))); got > 2<<10 {
				t.Errorf("%s: answer of %d bytes", name, got)
			}
		}
	}
}

// The budget of the hot paths: nothing.
func TestDecodingDoesNotAllocate(t *testing.T) {
	publish := AppendPublish(nil, &Publish{
		Acked: true, RequestID: 1, AckMode: AckPerBatch, Idempotent: true, Keyed: true, Key: []byte("key"),
		Tenant: []byte("t1"), Namespace: []byte("default"), Stream: []byte("demo"),
		Records: RecordsOf([]byte("a"), []byte("bb"), []byte("ccc")),
	})
	events := AppendEvents(nil, &Events{
		HasOffsets: true, Base: 45, HasSkipped: true, Skipped: 1, HasPublisher: true, Publisher: []byte("p"),
		Records: RecordsOf([]byte("a"), []byte("bb"), []byte("ccc")),
	})
	offset := append(BeginOffsetFrame(nil, 7, 3, 18), RecordsOf([]byte("a"), []byte("bb"), []byte("ccc")).Bytes...)
	buf := make([]byte, 0, 256)
	sink := 0
	for name, f := range map[string]func() error{
		"publish": func() error {
			h, err := ParseHeader(publish)
			if err != nil {
				return err
			}
			p, err := DecodePublish(h.Flags, publish[HeaderLen:])
			for _, r := range p.Records.All() {
				sink += len(r)
			}
			return err
		},
		"events": func() error {
			h, err := ParseHeader(events)
			if err != nil {
				return err
			}
			e, err := DecodeEvents(h.Flags, events[HeaderLen:])
			for _, ev := range e.Each() {
				sink += len(ev.Payload)
			}
			return err
		},
		"peek":       func() error { _, err := PeekOffsetFrame(offset); return err },
		"with skip":  func() error { buf = AppendWithSkip(buf[:0], offset, 2); return nil },
		"as plain":   func() error { buf = AppendAsPlain(buf[:0], offset); return nil },
		"from":       func() (err error) { buf, err = AppendFrom(buf[:0], offset, 8); return err },
		"append ack": func() error { buf = AppendAck(buf[:0], &Ack{OK: true, HasOffset: true}); return nil },
		"sizes":      func() error { return Records{Count: 3, Bytes: offset[OffsetFrameOverhead:]}.CheckSizes(10) },
		"shard":      func() error { sink += int(ShardOf(publish[:9], true, 7, RoutingJump)); return nil },
	} {
		var err error
		if n := testing.AllocsPerRun(100, func() { err = f() }); n != 0 || err != nil {
			t.Errorf("%s: %v allocations, error %v", name, n, err)
		}
	}
}
