package client

import (
	"errors"
	"io"

	"felix.dev/felix/broker/wire"
)

const (
	// minFrameBuf is what a buffer begins with. A process may hold thousands of idle subscriptions.
	minFrameBuf = 4 << 10
	// keepFrameBuf is what a buffer grows to for the sake of larger reads; above it, it grows only for a frame that
	// does not fit, and is given back afterwards.
	keepFrameBuf = 256 << 10
)

// frameBuf cuts frames out of a stream of bytes in place. It belongs to one goroutine.
type frameBuf struct {
	r io.Reader
	// buf[start:end] was read and not yet consumed.
	buf        []byte
	start, end int
	// err is what the last Read returned beside or instead of bytes. It is reported when the whole frames before it
	// are used up.
	err error
	// full says that the last Read filled the buffer: more is waiting, so a larger buffer saves calls.
	full bool
}

func newFrameBuf(r io.Reader) *frameBuf { return &frameBuf{r: r} }

// peek returns the frame at the front if it is there as a whole. The payload is valid until the next fill. An error
// means that no frame can ever be read from here.
func (f *frameBuf) peek() (h wire.Header, payload []byte, ok bool, err error) {
	b := f.buf[f.start:f.end]
	if len(b) < wire.HeaderLen {
		return wire.Header{}, nil, false, nil
	}
	h, err = wire.ParseHeader(b)
	if err != nil {
		return wire.Header{}, nil, false, err
	}
	if h.Length > wire.MaxPayload {
		return wire.Header{}, nil, false, &wire.TooLargeError{Length: h.Length, Limit: wire.MaxPayload}
	}
	n := wire.HeaderLen + int(h.Length)
	if len(b) < n {
		return h, nil, false, nil
	}
	return h, b[wire.HeaderLen:n:n], true, nil
}

// consume drops the frame that peek returned.
func (f *frameBuf) consume(h wire.Header) { f.start += wire.HeaderLen + int(h.Length) }

// fill reads once. It must only be called when peek has found no whole frame, and invalidates what peek returned. At
// the end of the stream it returns io.EOF between two frames and io.ErrUnexpectedEOF within one.
func (f *frameBuf) fill() error {
	if f.err != nil {
		return f.ending()
	}
	f.makeRoom()
	n, err := f.r.Read(f.buf[f.end:])
	f.end += n
	f.full = f.end == len(f.buf)
	f.err = err
	if n == 0 && err != nil {
		return f.ending()
	}
	return nil
}

// ending is f.err, told apart by whether a frame was cut short.
func (f *frameBuf) ending() error {
	if errors.Is(f.err, io.EOF) && f.end > f.start {
		return io.ErrUnexpectedEOF
	}
	return f.err
}

// forgetTimeout makes the buffer usable again after a Read that ran into a deadline.
func (f *frameBuf) forgetTimeout() { f.err = nil }

// makeRoom leaves free space behind end: it moves an incomplete frame to the front, and grows or shrinks the buffer.
// It grows in steps as bytes arrive, never because of a length that was only announced.
func (f *frameBuf) makeRoom() {
	have := f.end - f.start
	size := len(f.buf)
	switch {
	case size == 0:
		size = minFrameBuf
	case have == size:
		size *= 2
	case f.full && size < keepFrameBuf:
		size *= 2
	case size > keepFrameBuf && have <= keepFrameBuf/2:
		size = keepFrameBuf
	}
	f.full = false
	if size == len(f.buf) {
		if f.start > 0 {
			copy(f.buf, f.buf[f.start:f.end])
		}
	} else {
		b := make([]byte, size)
		copy(b, f.buf[f.start:f.end])
		f.buf = b
	}
	f.start, f.end = 0, have
}
