package wire

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEventsRoundTrip(t *testing.T) {
	plain := RecordsOf([]byte("a"), []byte{}, []byte("ccc"))
	var timed []byte
	timed = AppendTimedRecord(timed, 1764504000000000, []byte("a"))
	timed = AppendTimedRecord(timed, 0, nil)
	for name, e := range map[string]Events{
		"plain":     {Records: plain},
		"offsets":   {HasOffsets: true, Base: 1 << 63, Records: plain},
		"skipped":   {HasOffsets: true, Base: 41, HasSkipped: true, Skipped: 41, Records: plain},
		"publisher": {HasPublisher: true, Publisher: []byte("p:é"), Records: plain},
		"nobody":    {HasPublisher: true, Publisher: []byte{}, Records: plain},
		"times":     {HasTimes: true, Records: Records{Count: 2, Bytes: timed}},
		"legacy":    {Legacy: true, SubscriptionID: 9, HasOffsets: true, Base: 3, Records: plain},
		"none":      {Records: Records{Bytes: []byte{}}},
	} {
		t.Run(name, func(t *testing.T) {
			h, payload := splitFrame(t, AppendEvents(nil, &e))
			got, err := DecodeEvents(h.Flags, payload)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(e, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			n := 0
			for i, ev := range got.Each() {
				if i != n {
					t.Errorf("index %d, want %d", i, n)
				}
				if e.HasTimes && i == 0 && (ev.TimeMicros != 1764504000000000 || string(ev.Payload) != "a") {
					t.Errorf("event %+v", ev)
				}
				n++
			}
			if n != int(e.Records.Count) {
				t.Errorf("%d events of %d", n, e.Records.Count)
			}
			for range got.Each() {
				break
			}
		})
	}
}

// What no peer accepts is not sent.
func TestAppendEventsLeavesOutTheImpossible(t *testing.T) {
	e := Events{HasSkipped: true, Skipped: 1, HasPublisher: true, Publisher: []byte(strings.Repeat("é", 200)), Records: RecordsOf([]byte("a"))}
	h, payload := splitFrame(t, AppendEvents(nil, &e))
	got, err := DecodeEvents(h.Flags, payload)
	if err != nil {
		t.Fatal(err)
	}
	if got.HasSkipped || len(got.Publisher) != 254 {
		t.Errorf("skipped %v, publisher of %d bytes", got.HasSkipped, len(got.Publisher))
	}
}

func BenchmarkAppendEvents(b *testing.B) {
	b.ReportAllocs()
	var region []byte
	for range 64 {
		region = AppendRecord(region, make([]byte, 256))
	}
	e := Events{HasOffsets: true, Base: 7, Records: Records{Count: 64, Bytes: region}}
	var buf []byte
	b.SetBytes(int64(len(region)))
	for b.Loop() {
		buf = AppendEvents(buf[:0], &e)
	}
}

func BenchmarkDecodeEvents(b *testing.B) {
	b.ReportAllocs()
	var region []byte
	for range 64 {
		region = AppendRecord(region, make([]byte, 256))
	}
	frame := AppendEvents(nil, &Events{HasOffsets: true, Base: 7, Records: Records{Count: 64, Bytes: region}})
	b.SetBytes(int64(len(frame)))
	for b.Loop() {
		e, err := DecodeEvents(FlagEvents|FlagEventOffsets, frame[HeaderLen:])
		if err != nil {
			b.Fatal(err)
		}
		for _, ev := range e.Each() {
			if len(ev.Payload) != 256 {
				b.Fatal(len(ev.Payload))
			}
		}
	}
}
