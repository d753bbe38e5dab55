package server

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"felix.dev/felix/broker/wire"
	"felix.dev/felix/broker/wire/frameio"
)

func TestReadPayload(t *testing.T) {
	for _, n := range []int{0, 1, 1000, firstBytes, firstBytes + 1, growBy * firstBytes, 3 << 20, 5 << 20, 16 << 20} {
		want := bytes.Repeat([]byte("abcdefg"), n/7+1)[:n]
		frame := append(wire.AppendHeader(nil, 0, n), want...)
		r := frameio.NewReader(bytes.NewReader(frame), 0)
		r.SetLimit(wire.MaxPayload)
		h, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		b, err := readPayload(r, h)
		if err != nil || !bytes.Equal(b.B, want) {
			t.Errorf("payload of %d: %d bytes, %v", n, len(b.B), err)
		}
		b.Give()
	}
}

// What has not arrived takes no memory beyond a multiple of what has.
func TestReadPayloadCutShort(t *testing.T) {
	for _, arrived := range []int{0, 100, firstBytes - 1, firstBytes, 64 << 10, 1 << 20} {
		frame := append(wire.AppendHeader(nil, 0, 16<<20), make([]byte, arrived)...)
		r := frameio.NewReader(bytes.NewReader(frame), 0)
		r.SetLimit(wire.MaxPayload)
		h, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		b, err := readPayload(r, h)
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("got %v", err)
		}
		if cap(b.B) > max(firstBytes, growBy*arrived) {
			t.Errorf("%d bytes taken for %d that arrived", cap(b.B), arrived)
		}
		b.Give()
	}
}

func TestFrameCost(t *testing.T) {
	for length, want := range map[uint32]int64{0: 1024, 512: 1024, 513: 1536, 64 << 10: 64<<10 + 512, 1 << 20: 1<<20 + 512} {
		if got := frameCost(length); got != want {
			t.Errorf("frame of %d: %d, want %d", length, got, want)
		}
	}
}
