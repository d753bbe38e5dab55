package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func payloadsOf(r Records) []string {
	var out []string
	for i, p := range r.All() {
		if i != len(out) {
			panic("index")
		}
		out = append(out, string(p))
	}
	return out
}

func TestRecords(t *testing.T) {
	r := RecordsOf([]byte("a"), nil, []byte("ccc"))
	if diff := cmp.Diff([]string{"a", "", "ccc"}, payloadsOf(r)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	parsed, err := ParseRecords(3, r.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, parsed); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if r.PayloadBytes() != 4 {
		t.Errorf("payload bytes %d", r.PayloadBytes())
	}
	for i := range r.All() { // stopping early
		if i == 1 {
			break
		}
	}
	for name, c := range map[string]struct {
		count uint32
		b     []byte
	}{
		"one too few":     {2, r.Bytes},
		"one too many":    {4, r.Bytes},
		"absurd count":    {1<<32 - 1, r.Bytes},
		"cut":             {3, r.Bytes[:len(r.Bytes)-1]},
		"length too long": {1, []byte{0xff, 0xff, 0xff, 0xff, 1}},
		"bytes but none":  {0, []byte{0}},
	} {
		if _, err := ParseRecords(c.count, c.b); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if _, err := ParseRecords(0, nil); err != nil {
		t.Errorf("none: %v", err)
	}
}

// A payload must not reach into the next record by append.
func TestRecordsAreCapped(t *testing.T) {
	r := RecordsOf([]byte("a"), []byte("b"))
	for _, p := range r.All() {
		_ = append(p, "overwritten"...)
	}
	if diff := cmp.Diff([]string{"a", "b"}, payloadsOf(r)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A Records that nobody parsed ends where its bytes do.
func TestUnparsedRecordsDoNotPanic(t *testing.T) {
	for _, r := range []Records{{Count: 5}, {Count: 2, Bytes: []byte{0, 0, 0, 1, 7, 0, 0}}, {Count: 1, Bytes: []byte{0xff, 0xff, 0xff, 0xff}}} {
		payloadsOf(r)
		for range (Events{Records: r, HasTimes: true}).Each() {
			t.Log("an event")
		}
	}
}

// B49: a batch with one record above the limit names it.
func TestB49CheckSizesNamesTheRecord(t *testing.T) {
	r := RecordsOf(make([]byte, 10), make([]byte, 101), make([]byte, 102))
	err := r.CheckSizes(100)
	tl, ok := errors.AsType[*RecordTooLargeError](err)
	if !ok || tl.Index != 1 || tl.Length != 101 || tl.Limit != 100 {
		t.Errorf("error %v", err)
	}
	if err := r.CheckSizes(102); err != nil {
		t.Error(err)
	}
	if err := r.CheckSizes(1 << 20); err != nil {
		t.Error(err)
	}
}

// The largest record that is accepted fits every event shape that we send.
func TestMaxRecordFitsEveryShape(t *testing.T) {
	frame := BeginOffsetFrame(nil, 1<<40, 1, recordOverhead+MaxRecord)
	frame = AppendRecord(frame, make([]byte, MaxRecord))
	if fi, err := PeekOffsetFrame(frame); err != nil || fi.Size != len(frame) {
		t.Fatalf("%+v, %v", fi, err)
	}
	for name, f := range map[string][]byte{"skip": AppendWithSkip(nil, frame, 3), "plain": AppendAsPlain(nil, frame)} {
		h, err := ParseHeader(f)
		if err != nil || h.Length > MaxPayload {
			t.Errorf("%s: payload of %d, %v", name, h.Length, err)
		}
		if name == "skip" && h.Length != MaxPayload {
			t.Errorf("the limit is not tight: %d", h.Length)
		}
	}
}

func TestRecordsJSON(t *testing.T) {
	for in, want := range map[string][]string{
		`[]`:                    nil,
		`null`:                  nil,
		` [ "YQ==" , "" ] `:     {"a", ""},
		`["\u0059Q==","+\/+/"]`: {"a", "\xfb\xff\xbf"},
	} {
		var r Records
		if err := json.Unmarshal([]byte(in), &r); err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		if diff := cmp.Diff(want, payloadsOf(r)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", in, diff)
		}
		if _, err := ParseRecords(r.Count, r.Bytes); err != nil {
			t.Errorf("%s: %v", in, err)
		}
	}
	for _, in := range []string{`{}`, `"YQ=="`, `[1]`, `["YQ"]`, `["Y?=="]`, `[null]`, `[["YQ=="]]`, `["YQ==",{}]`} {
		var r Records
		if err := json.Unmarshal([]byte(in), &r); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: error %v", in, err)
		}
	}
}

func BenchmarkParseRecords(b *testing.B) {
	b.ReportAllocs()
	var region []byte
	for range 64 {
		region = AppendRecord(region, make([]byte, 256))
	}
	b.SetBytes(int64(len(region)))
	for b.Loop() {
		r, err := ParseRecords(64, region)
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		for _, p := range r.All() {
			n += len(p)
		}
		if n != 64*256 {
			b.Fatal(n)
		}
	}
}

// withCount replaces the count in front of the region of a frame's payload.
func withCount(payload []byte, at int, count uint32) []byte {
	b := bytes.Clone(payload)
	binary.BigEndian.PutUint32(b[at:], count)
	return b
}
