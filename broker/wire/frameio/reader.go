package frameio

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"

	"felix.dev/felix/broker/wire"
)

const (
	// defaultBuffer is small: a connection has dozens of idle streams.
	defaultBuffer = 4 << 10
	// firstStep is what a payload may occupy before any of it has arrived: with
	// thousands of streams that announce one and send nothing, it adds up.
	firstStep = 8 << 10
)

// Reader reads frames: Next for a header, then Payload or Skip for what is
// behind it.
type Reader struct {
	r     *bufio.Reader
	limit uint32
	head  [wire.HeaderLen]byte
}

// NewReader reads from r with a buffer of bufSize bytes; 0 means 4 KiB. The
// limit begins at wire.PreauthMaxPayload.
func NewReader(r io.Reader, bufSize int) *Reader {
	if bufSize <= 0 {
		bufSize = defaultBuffer
	}
	return &Reader{r: bufio.NewReaderSize(r, bufSize), limit: wire.PreauthMaxPayload}
}

// SetLimit sets the largest payload that Next accepts: at most and usually
// wire.MaxPayload once a stream has authenticated, and for a client at once.
func (r *Reader) SetLimit(n int) { r.limit = uint32(max(0, min(n, wire.MaxPayload))) }

// Next reads a header. The errors are:
//
//   - io.EOF at the end of the stream between two frames;
//   - *wire.TooLargeError: the payload is above the limit and was not read; the
//     stream cannot be used any more;
//   - *wire.UnknownFlagsError (in a *wire.DecodeError), with the header filled:
//     Skip gets to the next frame;
//   - wire.ErrBadMagic, wire.ErrBadVersion: not this protocol;
//   - what the stream returned.
func (r *Reader) Next() (wire.Header, error) {
	if _, err := io.ReadFull(r.r, r.head[:]); err != nil {
		if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return wire.Header{}, io.EOF
		}
		return wire.Header{}, fmt.Errorf("read frame header: %w", err)
	}
	h, err := wire.ParseHeader(r.head[:])
	if errors.Is(err, wire.ErrMalformed) {
		return h, err
	}
	// Before the flags: a frame that is too long cannot be skipped either.
	if h.Length > r.limit {
		return h, &wire.TooLargeError{Length: h.Length, Limit: r.limit}
	}
	return h, err
}

// Payload reads the payload of the frame whose header Next just returned. The
// result uses the memory of into where it is large enough; more is allocated
// as bytes arrive.
func (r *Reader) Payload(h wire.Header, into []byte) ([]byte, error) {
	length := int(h.Length)
	b := into[:0]
	for step := max(cap(b), firstStep); len(b) < length; step = 2 * len(b) {
		have := len(b)
		want := min(length, step)
		b = slices.Grow(b, want-have)[:want]
		if n, err := io.ReadFull(r.r, b[have:]); err != nil {
			return b[:have+n], payloadErr(err)
		}
	}
	return b, nil
}

// Skip reads over the payload of the frame whose header Next just returned.
func (r *Reader) Skip(h wire.Header) error {
	if _, err := io.CopyN(io.Discard, r.r, int64(h.Length)); err != nil {
		return payloadErr(err)
	}
	return nil
}

// payloadErr: within a frame every end is unexpected.
func payloadErr(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("read frame payload: %w", err)
}
