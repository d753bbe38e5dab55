package client

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/iotest"

	"felix.dev/felix/broker/wire"
)

func messageFrame(n int) []byte {
	f := wire.AppendHeader(nil, 0, n)
	for i := range n {
		f = append(f, byte(i))
	}
	return f
}

// readFrames reads to the end and returns the payload lengths.
func readFrames(t *testing.T, f *frameBuf) ([]int, error) {
	t.Helper()
	var lens []int
	for {
		h, p, ok, err := f.peek()
		if err != nil {
			return lens, err
		}
		if ok {
			if !bytes.Equal(append(wire.AppendHeader(nil, h.Flags, len(p)), p...), messageFrame(len(p))) {
				t.Fatalf("frame %d of %d bytes is damaged", len(lens), len(p))
			}
			lens = append(lens, len(p))
			f.consume(h)
			continue
		}
		if err := f.fill(); err != nil {
			return lens, err
		}
	}
}

func TestFrameBuf(t *testing.T) {
	sizes := []int{0, 1, 12, 100, minFrameBuf, 5, keepFrameBuf, 3, keepFrameBuf + 1, 7, 0, 64}
	var stream []byte
	for _, n := range sizes {
		stream = append(stream, messageFrame(n)...)
	}
	for name, r := range map[string]io.Reader{
		"as it comes":    bytes.NewReader(stream),
		"error with end": iotest.DataErrReader(bytes.NewReader(stream)),
		"halves":         iotest.HalfReader(bytes.NewReader(stream)),
		"single bytes":   iotest.OneByteReader(bytes.NewReader(stream)),
	} {
		t.Run(name, func(t *testing.T) {
			f := newFrameBuf(r)
			got, err := readFrames(t, f)
			if !errors.Is(err, io.EOF) {
				t.Errorf("end: got %v, want io.EOF", err)
			}
			if fmt.Sprint(got) != fmt.Sprint(sizes) {
				t.Errorf("frames: got %v, want %v", got, sizes)
			}
		})
	}
}

func TestFrameBufEnds(t *testing.T) {
	whole := messageFrame(40)
	boom := errors.New("boom")
	tests := []struct {
		name string
		r    io.Reader
		n    int
		want error
	}{
		{"empty", bytes.NewReader(nil), 0, io.EOF},
		{"between frames", bytes.NewReader(whole), 1, io.EOF},
		{"in a header", bytes.NewReader(append(bytes.Clone(whole), whole[:5]...)), 1, io.ErrUnexpectedEOF},
		{"in a payload", bytes.NewReader(append(bytes.Clone(whole), whole[:20]...)), 1, io.ErrUnexpectedEOF},
		{"error behind data", io.MultiReader(bytes.NewReader(whole), iotest.ErrReader(boom)), 1, boom},
		{"bad magic", bytes.NewReader(make([]byte, 64)), 0, wire.ErrBadMagic},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := readFrames(t, newFrameBuf(tt.r))
			if !errors.Is(err, tt.want) || errors.Is(err, io.EOF) != errors.Is(tt.want, io.EOF) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			if len(got) != tt.n {
				t.Errorf("got %d frames, want %d", len(got), tt.n)
			}
		})
	}
}

// A length that is only announced must not be allocated.
func TestFrameBufAllocatesWhatArrived(t *testing.T) {
	f := newFrameBuf(bytes.NewReader(append(wire.AppendHeader(nil, 0, wire.MaxPayload), 1, 2, 3)))
	if _, err := readFrames(t, f); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v, want io.ErrUnexpectedEOF", err)
	}
	if len(f.buf) > minFrameBuf {
		t.Errorf("buffer has %d bytes after 15 arrived", len(f.buf))
	}
	f = newFrameBuf(bytes.NewReader(wire.AppendHeader(nil, 0, wire.MaxPayload+1)))
	var tooLarge *wire.TooLargeError
	if _, err := readFrames(t, f); !errors.As(err, &tooLarge) {
		t.Errorf("got %v, want a TooLargeError", err)
	}
}

// One large frame must not cost its memory for ever.
func TestFrameBufGivesBack(t *testing.T) {
	large, small := messageFrame(1<<20), messageFrame(10)
	f := newFrameBuf(iotest.HalfReader(bytes.NewReader(append(large, small...))))
	if _, err := readFrames(t, f); !errors.Is(err, io.EOF) {
		t.Fatalf("got %v, want io.EOF", err)
	}
	if len(f.buf) > keepFrameBuf {
		t.Errorf("buffer keeps %d bytes, want at most %d", len(f.buf), keepFrameBuf)
	}
}
