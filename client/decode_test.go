package client

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"felix.dev/felix/broker/wire"
)

// script is a stream of frames.
type script struct{ b []byte }

func (s *script) events(e wire.Events, records ...string) *script {
	var p [][]byte
	for _, r := range records {
		p = append(p, []byte(r))
	}
	e.Records = wire.RecordsOf(p...)
	s.b = wire.AppendEvents(s.b, &e)
	return s
}

func (s *script) at(base uint64, records ...string) *script {
	return s.events(wire.Events{HasOffsets: true, Base: base}, records...)
}

func (s *script) skip(base, skipped uint64, records ...string) *script {
	return s.events(wire.Events{HasOffsets: true, Base: base, HasSkipped: true, Skipped: skipped}, records...)
}

func (s *script) message(m wire.Message) *script {
	s.b = wire.AppendMessage(s.b, m)
	return s
}

// run decodes everything and describes what came out, one line for each event, gap, end and error.
func (s *script) run(d *decoder, limit int) []string {
	var out []string
	f := newFrameBuf(bytes.NewReader(s.b))
	gap := func(from, to uint64) { out = append(out, fmt.Sprintf("gap %d-%d", from, to)) }
	for {
		events, end, err := d.decode(nil, f, limit, gap)
		for _, e := range events {
			line := string(e.Payload)
			if e.HasOffset {
				line = fmt.Sprintf("%d:%s", e.Offset, e.Payload)
			}
			if e.Skipped > 0 {
				line += fmt.Sprintf(" skipped=%d", e.Skipped)
			}
			if e.Gap > 0 {
				line += fmt.Sprintf(" gap=%d", e.Gap)
			}
			out = append(out, line)
		}
		switch {
		case len(events) > limit:
			return append(out, "too many at once")
		case len(events) > 0:
			continue
		case err != nil:
			return append(out, "error "+err.Error())
		case end != nil:
			return append(out, fmt.Sprintf("end %+v", *end))
		}
		if f.fill() != nil {
			return out
		}
	}
}

func TestDecode(t *testing.T) {
	offset := uint64(10)
	protocol := "error felix: protocol error, event stream: "
	tests := []struct {
		name string
		dec  decoder
		in   *script
		want []string
	}{
		{"one by one", decoder{known: true}, new(script).at(0, "a").at(1, "b"), []string{"0:a", "1:b"}},
		{"batches", decoder{known: true}, new(script).at(0, "a", "b", "c").at(3, "d"), []string{"0:a", "1:b", "2:c", "3:d"}},
		{"empty payload", decoder{known: true}, new(script).at(0, "", ""), []string{"0:", "1:"}},
		{"first offset not known", decoder{}, new(script).at(7, "a").at(8, "b"), []string{"7:a", "8:b"}},
		{"without offsets", decoder{}, new(script).events(wire.Events{}, "a", "b"), []string{"a", "b"}},
		{"skip explains", decoder{known: true}, new(script).at(0, "a").skip(3, 2, "b", "c"), []string{"0:a", "3:b skipped=2", "4:c"}},
		// B27
		{"began at a hidden record", decoder{known: true, want: 10}, new(script).skip(11, 1, "a"), []string{"11:a skipped=1"}},
		{"began inside of hidden records", decoder{known: true, want: 10}, new(script).skip(12, 5, "a"), []string{"12:a skipped=5"}},
		{"gap", decoder{known: true}, new(script).at(0, "a").at(5, "b", "c"), []string{"gap 1-5", "0:a", "5:b gap=4", "6:c"}},
		{"gap and skip", decoder{known: true}, new(script).at(0, "a").skip(5, 1, "b"), []string{"gap 1-4", "0:a", "5:b skipped=1 gap=3"}},
		{"repeat", decoder{known: true}, new(script).at(0, "a", "b").at(1, "b"), []string{"0:a", "1:b", protocol + "offset 1 again, where 2 is due"}},
		{"backwards", decoder{known: true, want: 9}, new(script).at(3, "a"), []string{protocol + "offset 3 again, where 9 is due"}},
		{
			"offsets vanish",
			decoder{known: true},
			new(script).at(0, "a").events(wire.Events{}, "b"),
			[]string{"0:a", protocol + "events without offsets, where offset 1 is due"},
		},
		{"legacy", decoder{id: 4, known: true}, new(script).events(wire.Events{Legacy: true, SubscriptionID: 4, HasOffsets: true}, "a"), []string{"0:a"}},
		{
			"legacy of another",
			decoder{id: 4, known: true},
			new(script).events(wire.Events{Legacy: true, SubscriptionID: 5, HasOffsets: true}, "a"),
			[]string{protocol + "events of subscription 5 on the stream of subscription 4"},
		},
		{
			"JSON events",
			decoder{known: true, want: 10},
			new(script).
				message(&wire.EventJSON{TenantID: "t", Namespace: "n", Stream: "s", Payload: []byte("a"), Offset: &offset}).
				message(&wire.EventBatchJSON{TenantID: "t", Namespace: "n", Stream: "s", Records: wire.RecordsOf([]byte("b"), []byte("c")), BaseOffset: new(uint64(11))}).
				at(13, "d"),
			[]string{"10:a", "11:b", "12:c", "13:d"},
		},
		{
			"lag notice after events",
			decoder{id: 4, known: true},
			new(script).at(0, "a").message(&wire.SubscriptionLagged{SubscriptionID: 4, ResumeFrom: 1}),
			[]string{"0:a", "end {lagged:true resumeFrom:1 addr:}"},
		},
		{
			"moved",
			decoder{id: 4, known: true},
			new(script).message(&wire.ShardMoved{SubscriptionID: 4, ResumeFrom: &offset, Addr: "b:1"}),
			[]string{"end {lagged:false resumeFrom:10 addr:b:1}"},
		},
		{
			"notice of another",
			decoder{id: 4, known: true},
			new(script).message(&wire.SubscriptionLagged{SubscriptionID: 5}),
			[]string{protocol + "end of subscription 5 on the stream of subscription 4"},
		},
		{"other message", decoder{known: true}, new(script).message(&wire.OK{}), []string{protocol + `message "ok" on an event stream`}},
		{"times", decoder{known: true}, &script{b: wire.AppendEvents(nil, &wire.Events{
			HasOffsets: true, HasTimes: true, Records: wire.Records{Count: 1, Bytes: wire.AppendTimedRecord(nil, 1, []byte("a"))},
		})}, []string{protocol + "event frame with times, which were not offered"}},
	}
	for _, tt := range tests {
		for _, limit := range []int{1, 2, 1000} {
			t.Run(fmt.Sprintf("%s/%d", tt.name, limit), func(t *testing.T) {
				d := tt.dec
				got := tt.in.run(&d, limit)
				// Gaps are reported when a frame is begun, which is before or after events in front of it.
				if diff := cmp.Diff(gapsFirst(tt.want), gapsFirst(got)); diff != "" {
					t.Errorf("decoded (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func gapsFirst(lines []string) []string {
	var gaps, rest []string
	for _, l := range lines {
		if strings.HasPrefix(l, "gap ") {
			gaps = append(gaps, l)
		} else {
			rest = append(rest, l)
		}
	}
	return append(gaps, rest...)
}

// The fast path of a subscription must not allocate for each event.
func TestDecodeAllocates(t *testing.T) {
	s := new(script)
	const frames = 500
	for i := range frames {
		s.at(uint64(2*i), "0123456789", "0123456789")
	}
	f := &frameBuf{buf: s.b}
	events := make([]Event, 0, maxBatchEvents)
	gap := func(uint64, uint64) {}
	allocs := testing.AllocsPerRun(20, func() {
		f.start, f.end = 0, len(s.b)
		d := decoder{known: true}
		var err error
		if events, _, err = d.decode(events[:0], f, maxBatchEvents, gap); err != nil || len(events) != 2*frames {
			t.Fatalf("decoded %d events, error %v", len(events), err)
		}
	})
	if allocs > 1 {
		t.Errorf("%v allocations for %d events, want at most 1", allocs, 2*frames)
	}
}

func BenchmarkDecode(b *testing.B) {
	s := new(script)
	const frames = 100
	for i := range frames {
		s.at(uint64(i), string(make([]byte, 256)))
	}
	f := &frameBuf{buf: s.b}
	events := make([]Event, 0, maxBatchEvents)
	b.ReportAllocs()
	b.SetBytes(int64(len(s.b)))
	for b.Loop() {
		f.start, f.end = 0, len(s.b)
		d := decoder{known: true}
		events, _, _ = d.decode(events[:0], f, maxBatchEvents, nil)
	}
}
