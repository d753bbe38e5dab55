package frameio

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"felix.dev/felix/broker/wire"
)

func frame(flags wire.Flags, payload string) []byte {
	return append(wire.AppendHeader(nil, flags, len(payload)), payload...)
}

func TestReader(t *testing.T) {
	large := string(bytes.Repeat([]byte("0123456789"), 30000))
	frames := []struct {
		flags   wire.Flags
		payload string
	}{{0, `{"type":"ok"}`}, {wire.FlagPublish, ""}, {wire.FlagEvents, large}, {wire.FlagAck, "skipped"}, {0, "last"}}
	var in []byte
	for _, f := range frames {
		in = append(in, frame(f.flags, f.payload)...)
	}
	for name, r := range map[string]io.Reader{
		"at once":     bytes.NewReader(in),
		"byte a time": iotest.OneByteReader(bytes.NewReader(in)),
		"halves":      iotest.HalfReader(bytes.NewReader(in)),
		"data, EOF":   iotest.DataErrReader(bytes.NewReader(in)),
	} {
		t.Run(name, func(t *testing.T) {
			fr := NewReader(r, 0)
			fr.SetLimit(wire.MaxPayload)
			var buf []byte
			for _, want := range frames {
				h, err := fr.Next()
				if err != nil {
					t.Fatal(err)
				}
				if h.Flags != want.flags || int(h.Length) != len(want.payload) {
					t.Fatalf("header %+v", h)
				}
				if want.payload == "skipped" {
					if err := fr.Skip(h); err != nil {
						t.Fatal(err)
					}
					continue
				}
				if buf, err = fr.Payload(h, buf); err != nil {
					t.Fatal(err)
				}
				if string(buf) != want.payload {
					t.Errorf("payload of %d bytes, want %d", len(buf), len(want.payload))
				}
			}
			for range 2 {
				if _, err := fr.Next(); !errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
					t.Errorf("at the end: %v", err)
				}
			}
		})
	}
}

// An end anywhere but between two frames is unexpected.
func TestReaderTruncated(t *testing.T) {
	whole := frame(wire.FlagPublish, "payload")
	for cut := 1; cut < len(whole); cut++ {
		for _, skip := range []bool{false, true} {
			fr := NewReader(bytes.NewReader(whole[:cut]), 16)
			h, err := fr.Next()
			if cut >= wire.HeaderLen {
				if err != nil {
					t.Fatalf("cut at %d: %v", cut, err)
				}
				if skip {
					err = fr.Skip(h)
				} else {
					_, err = fr.Payload(h, nil)
				}
			}
			if !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("cut at %d, skip %v: %v", cut, skip, err)
			}
		}
	}
}

func TestReaderLimit(t *testing.T) {
	for name, tt := range map[string]struct {
		set, length int
		limit       uint32 // 0: accepted
	}{
		"before auth":      {-1, wire.PreauthMaxPayload + 1, wire.PreauthMaxPayload},
		"at the limit":     {-1, wire.PreauthMaxPayload, 0},
		"after auth":       {wire.MaxPayload, wire.MaxPayload, 0},
		"above":            {wire.MaxPayload, wire.MaxPayload + 1, wire.MaxPayload},
		"never above that": {1 << 30, 1<<32 - 1, wire.MaxPayload},
	} {
		t.Run(name, func(t *testing.T) {
			in := wire.AppendHeader(nil, 0, tt.length)
			fr := NewReader(bytes.NewReader(in), 0)
			if tt.set >= 0 {
				fr.SetLimit(tt.set)
			}
			h, err := fr.Next()
			if int64(h.Length) != int64(tt.length) {
				t.Errorf("header %+v", h)
			}
			if tt.limit == 0 {
				if err != nil {
					t.Error(err)
				}
				return
			}
			tl, ok := errors.AsType[*wire.TooLargeError](err)
			if !ok || tl.Limit != tt.limit || int64(tl.Length) != int64(tt.length) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// B54: a frame with an unknown flag is refused with its header, and the stream
// stays on a frame boundary, so that it can be answered.
func TestB54UnknownFlagsKeepTheBoundary(t *testing.T) {
	in := append(frame(wire.FlagPublish|0x8000, "unknown"), frame(0, "next")...)
	fr := NewReader(bytes.NewReader(in), 0)
	h, err := fr.Next()
	if u, ok := errors.AsType[*wire.UnknownFlagsError](err); !ok || u.Flags != 0x8000 || h.Length != 7 {
		t.Fatalf("%+v, %v", h, err)
	}
	if err := fr.Skip(h); err != nil {
		t.Fatal(err)
	}
	if h, err := fr.Next(); err != nil || h.Length != 4 {
		t.Errorf("%+v, %v", h, err)
	}
	// Too long and unknown: the length decides, as it cannot be skipped.
	fr = NewReader(bytes.NewReader(wire.AppendHeader(nil, 0x8000, wire.MaxPayload)), 0)
	if _, err := fr.Next(); errors.As(err, new(*wire.UnknownFlagsError)) || !errors.As(err, new(*wire.TooLargeError)) {
		t.Errorf("error %v", err)
	}
}

func TestReaderBadHeader(t *testing.T) {
	for name, tt := range map[string]struct {
		in   string
		want error
	}{
		"magic":   {"GET / HTTP/1.1", wire.ErrBadMagic},
		"version": {"FLX1\x00\x02\x00\x00\x00\x00\x00\x00", wire.ErrBadVersion},
	} {
		if _, err := NewReader(bytes.NewReader([]byte(tt.in)), 0).Next(); !errors.Is(err, tt.want) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestReaderPassesErrorsOn(t *testing.T) {
	reset := errors.New("stream reset")
	in := frame(0, "payload")
	for cut := range len(in) {
		fr := NewReader(io.MultiReader(bytes.NewReader(in[:cut]), iotest.ErrReader(reset)), 0)
		h, err := fr.Next()
		if err == nil {
			_, err = fr.Payload(h, nil)
		}
		if !errors.Is(err, reset) || errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("after %d bytes: %v", cut, err)
		}
	}
}

// TestB52AnnouncedLengthCostsNothing: B52. 2048 streams with a header that
// announces 16 MiB, and nothing or a little behind it, cost KBs each.
func TestB52AnnouncedLengthCostsNothing(t *testing.T) {
	const streams = 2048
	for name, tt := range map[string]struct{ sent, limit int }{
		"nothing": {0, 24 << 10}, "1 KiB": {1 << 10, 24 << 10}, "64 KiB": {64 << 10, 512 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			in := append(wire.AppendHeader(nil, wire.FlagPublish, wire.MaxPayload), make([]byte, tt.sent)...)
			n := streams
			if tt.sent > 1<<10 {
				n = 16
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for range n {
				fr := NewReader(bytes.NewReader(in), 0)
				fr.SetLimit(wire.MaxPayload)
				h, err := fr.Next()
				if err != nil {
					t.Fatal(err)
				}
				b, err := fr.Payload(h, nil)
				if !errors.Is(err, io.ErrUnexpectedEOF) || len(b) != tt.sent {
					t.Fatalf("%d bytes, %v", len(b), err)
				}
			}
			runtime.ReadMemStats(&after)
			if got := (after.TotalAlloc - before.TotalAlloc) / uint64(n); got > uint64(tt.limit) {
				t.Errorf("%d bytes allocated for a stream", got)
			}
		})
	}
}

// A buffer that is handed in again is used again.
func TestPayloadReusesItsBuffer(t *testing.T) {
	in := frame(wire.FlagPublish, string(make([]byte, 100<<10)))
	r := bytes.NewReader(in)
	fr := NewReader(r, 0)
	fr.SetLimit(wire.MaxPayload)
	buf := make([]byte, 0, 100<<10)
	n := testing.AllocsPerRun(20, func() {
		r.Reset(in)
		h, err := fr.Next()
		if err != nil {
			t.Fatal(err)
		}
		if buf, err = fr.Payload(h, buf); err != nil {
			t.Fatal(err)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations for a frame", n)
	}
}

// FuzzReader: however the bytes arrive, the same frames come out.
func FuzzReader(f *testing.F) {
	f.Add(append(frame(0, "a"), frame(wire.FlagEvents, "bb")...), uint64(1))
	f.Add(frame(0x8000, "unknown"), uint64(2))
	f.Add([]byte("FLX1"), uint64(3))
	read := func(r io.Reader) (out []string, last string) {
		fr := NewReader(r, 16)
		for {
			h, err := fr.Next()
			if err != nil && !errors.As(err, new(*wire.UnknownFlagsError)) {
				return out, err.Error()
			}
			b, err := fr.Payload(h, nil)
			if err != nil {
				return out, err.Error()
			}
			out = append(out, string(wire.AppendHeader(nil, h.Flags, len(b)))+string(b))
		}
	}
	f.Fuzz(func(t *testing.T, in []byte, seed uint64) {
		want, wantErr := read(bytes.NewReader(in))
		got, gotErr := read(&chunks{b: in, r: rand.New(rand.NewPCG(seed, 0))})
		if diff := cmp.Diff(want, got); diff != "" || wantErr != gotErr {
			t.Errorf("%q or %q -want +got:\n%s", wantErr, gotErr, diff)
		}
	})
}

// chunks hands out its bytes in pieces of random size.
type chunks struct {
	b []byte
	r *rand.Rand
}

func (c *chunks) Read(p []byte) (int, error) {
	if len(c.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), 1+c.r.IntN(40))], c.b)
	c.b = c.b[n:]
	return n, nil
}

func BenchmarkReader(b *testing.B) {
	b.ReportAllocs()
	in := frame(wire.FlagPublish, string(make([]byte, 16<<10)))
	r := bytes.NewReader(in)
	fr := NewReader(r, 0)
	var buf []byte
	b.SetBytes(int64(len(in)))
	for b.Loop() {
		r.Reset(in)
		h, err := fr.Next()
		if err != nil {
			b.Fatal(err)
		}
		if buf, err = fr.Payload(h, buf); err != nil {
			b.Fatal(err)
		}
	}
}
