package peer

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"time"
)

const (
	// maxFrame is the most that Config.MaxCallBytes may be.
	maxFrame  = 64 << 20
	maxMethod = 255

	answerOK     = 0
	answerFailed = 1
)

// request is one call on its way. docs/format/peer.md has the layout.
type request struct {
	within time.Duration // how long the caller waits
	method string
	body   []byte
	held   int64 // of Transport.largeCalls
}

func (r *request) bytes() []byte {
	ms := min(max(r.within.Milliseconds(), 1), math.MaxUint32)
	b := make([]byte, 0, 4+4+1+len(r.method)+len(r.body))
	b = binary.BigEndian.AppendUint32(b, uint32(4+1+len(r.method)+len(r.body)))
	b = binary.BigEndian.AppendUint32(b, uint32(ms))
	b = append(b, byte(len(r.method)))
	b = append(b, r.method...)
	return append(b, r.body...)
}

// readRequest reads a call whose body is at most most bytes. admit is asked before
// memory is taken for it.
func readRequest(r io.Reader, most int, admit func(n int) error) (request, error) {
	frame, err := readFrame(r, 4+1+maxMethod+most, admit)
	if err != nil {
		return request{}, err
	}
	if len(frame) < 5 || len(frame) < 5+int(frame[4]) {
		return request{}, fmt.Errorf("%w: a call is cut short", ErrProtocol)
	}
	method, body := frame[5:5+int(frame[4])], frame[5+int(frame[4]):]
	if len(body) > most {
		return request{}, fmt.Errorf("%w: %d bytes, this broker takes %d", ErrTooLarge, len(body), most)
	}
	within := time.Duration(binary.BigEndian.Uint32(frame)) * time.Millisecond
	return request{within: within, method: string(method), body: body}, nil
}

// resultBytes is the answer of a call.
func resultBytes(status byte, body []byte) []byte {
	b := make([]byte, 0, 4+1+len(body))
	b = binary.BigEndian.AppendUint32(b, uint32(1+len(body)))
	b = append(b, status)
	return append(b, body...)
}

// result is the answer of a call: JSON of what the handler gave, or of an Error.
type result struct {
	failed bool
	body   []byte
}

func readResult(r io.Reader, most int) (result, error) {
	frame, err := readFrame(r, 1+most, nil)
	if err != nil {
		return result{}, err
	}
	if len(frame) < 1 || frame[0] > answerFailed {
		return result{}, fmt.Errorf("%w: the answer of a call has no status", ErrProtocol)
	}
	return result{failed: frame[0] == answerFailed, body: frame[1:]}, nil
}

// decode gives resp, or the error that the answer is.
func (r *result) decode(resp any) error {
	if r.failed {
		var failure Error
		if err := json.Unmarshal(r.body, &failure); err != nil {
			return fmt.Errorf("%w: %w: an error that cannot be read: %w", ErrUnanswered, ErrProtocol, err)
		}
		return &failure
	}
	if resp == nil {
		return nil
	}
	if err := json.Unmarshal(r.body, resp); err != nil {
		return fmt.Errorf("%w: the answer cannot be read: %w", ErrUnanswered, err)
	}
	return nil
}

// readFrame reads what has its length before it. Memory is taken as bytes come, not
// as they are announced.
func readFrame(r io.Reader, most int, admit func(n int) error) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(length[:])
	if int64(n) > int64(most) {
		return nil, fmt.Errorf("%w: a frame of %d bytes, this broker takes %d", ErrTooLarge, n, most)
	}
	if admit != nil {
		if err := admit(int(n)); err != nil {
			return nil, err
		}
	}
	var b bytes.Buffer
	switch _, err := io.CopyN(&b, r, int64(n)); {
	case errors.Is(err, io.EOF):
		return nil, io.ErrUnexpectedEOF
	case err != nil:
		return nil, err
	}
	return b.Bytes(), nil
}
