package wire

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// offsetFrame lays out payloads at base.
func offsetFrame(base uint64, payloads ...string) []byte {
	var region []byte
	for _, p := range payloads {
		region = AppendRecord(region, []byte(p))
	}
	return append(BeginOffsetFrame(nil, base, uint32(len(payloads)), len(region)), region...)
}

func eventsOf(t *testing.T, frame []byte) (Events, []string) {
	t.Helper()
	h, payload := splitFrame(t, frame)
	e, err := DecodeEvents(h.Flags, payload)
	if err != nil {
		t.Fatal(err)
	}
	return e, payloadsOf(e.Records)
}

func TestOffsetFrameForms(t *testing.T) {
	frame := offsetFrame(41, "a", "", "ccc")
	fi, err := PeekOffsetFrame(frame)
	if diff := cmp.Diff(FrameInfo{Base: 41, Count: 3, Size: len(frame)}, fi); diff != "" || err != nil {
		t.Errorf("%v -want +got:\n%s", err, diff)
	}
	if fi2, err := PeekOffsetFrame(frame[:OffsetFrameOverhead]); err != nil || fi2 != fi {
		t.Errorf("from the fixed part alone: %+v, %v", fi2, err)
	}
	want := []string{"a", "", "ccc"}

	e, got := eventsOf(t, AppendWithSkip(nil, frame, 2))
	if diff := cmp.Diff(want, got); diff != "" || e.Base != 41 || !e.HasSkipped || e.Skipped != 2 {
		t.Errorf("with skip: %+v -want +got:\n%s", e, diff)
	}
	plain := AppendAsPlain(nil, frame)
	e, got = eventsOf(t, plain)
	if diff := cmp.Diff(want, got); diff != "" || e.HasOffsets {
		t.Errorf("plain: %+v -want +got:\n%s", e, diff)
	}
	fi, err = PeekPlainFrame(plain)
	if diff := cmp.Diff(FrameInfo{Count: 3, Size: len(plain)}, fi); diff != "" || err != nil {
		t.Errorf("%v -want +got:\n%s", err, diff)
	}
	begun := append(BeginPlainFrame(nil, 3, len(frame)-OffsetFrameOverhead), frame[OffsetFrameOverhead:]...)
	if diff := cmp.Diff(plain, begun); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAppendFrom(t *testing.T) {
	frame := offsetFrame(41, "a", "bb", "ccc")
	for from, want := range map[uint64][]string{
		0: {"a", "bb", "ccc"}, 41: {"a", "bb", "ccc"}, 42: {"bb", "ccc"}, 43: {"ccc"}, 44: nil, math.MaxUint64: nil,
	} {
		got, err := AppendFrom([]byte("before"), frame, from)
		if want == nil {
			if !errors.Is(err, ErrMalformed) || string(got) != "before" {
				t.Errorf("from %d: %q, %v", from, got, err)
			}
			continue
		}
		if err != nil || string(got[:6]) != "before" {
			t.Errorf("from %d: %v", from, err)
			continue
		}
		e, payloads := eventsOf(t, got[6:])
		if diff := cmp.Diff(want, payloads); diff != "" || e.Base != max(from, 41) {
			t.Errorf("from %d: base %d -want +got:\n%s", from, e.Base, diff)
		}
	}
	for name, bad := range map[string][]byte{
		"cut":       frame[:len(frame)-1],
		"too long":  append(slices.Clip(frame), 0),
		"no frame":  []byte("no frame"),
		"a message": AppendMessage(nil, &ErrorMsg{Message: "something long enough"}),
	} {
		if _, err := AppendFrom(nil, bad, 42); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	for name, at := range map[string]int{"skipped record": OffsetFrameOverhead, "kept record": OffsetFrameOverhead + 5} {
		bad := append([]byte{}, frame...)
		bad[at] = 0x7f
		if _, err := AppendFrom(nil, bad, 42); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestPeekRefuses(t *testing.T) {
	change := func(at int, v uint32) []byte {
		b := offsetFrame(41, "a")
		binary.BigEndian.PutUint32(b[at:], v)
		return b
	}
	for name, b := range map[string][]byte{
		"short":        offsetFrame(41, "a")[:OffsetFrameOverhead-1],
		"magic":        change(0, 1),
		"length":       change(8, 11),
		"large":        change(8, MaxPayload+1),
		"count 0":      change(20, 0),
		"count":        change(20, 2),
		"absurd count": change(20, math.MaxUint32),
		"plain":        AppendAsPlain(nil, offsetFrame(41, "a", "long enough")),
		"skipped":      AppendWithSkip(nil, offsetFrame(41, "a"), 1),
		"overflow":     offsetFrame(math.MaxUint64, "a"),
	} {
		if fi, err := PeekOffsetFrame(b); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %+v, %v", name, fi, err)
		}
	}
	for name, b := range map[string][]byte{"short": make([]byte, PlainFrameOverhead-1), "offsets": offsetFrame(41, "a")} {
		if fi, err := PeekPlainFrame(b); !errors.Is(err, ErrMalformed) {
			t.Errorf("plain: %s: %+v, %v", name, fi, err)
		}
	}
}

func TestBrokenInvariantsAreNamed(t *testing.T) {
	for name, f := range map[string]func(){
		"skip":    func() { AppendWithSkip(nil, []byte("x"), 1) },
		"plain":   func() { AppendAsPlain(nil, AppendWithSkip(nil, offsetFrame(1, "a"), 1)) },
		"length":  func() { AppendHeader(nil, 0, -1) },
		"key":     func() { AppendPublish(nil, &Publish{Keyed: true, Key: make([]byte, 1<<16)}) },
		"message": func() { AppendMessage(nil, foreign(0)) },
	} {
		func() {
			defer func() {
				if s, ok := recover().(string); !ok || len(s) < 20 {
					t.Errorf("%s: panic %v", name, s)
				}
			}()
			f()
		}()
	}
}

// foreign is a Message that is no object.
type foreign int

func (foreign) MessageType() string { return "foreign" }

func BenchmarkPeekOffsetFrame(b *testing.B) {
	b.ReportAllocs()
	frame := offsetFrame(41, "a", "bb")
	for b.Loop() {
		if _, err := PeekOffsetFrame(frame); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendWithSkip(b *testing.B) {
	b.ReportAllocs()
	frame := offsetFrame(41, string(make([]byte, 4096)))
	var buf []byte
	b.SetBytes(int64(len(frame)))
	for b.Loop() {
		buf = AppendWithSkip(buf[:0], frame, 1)
	}
}
