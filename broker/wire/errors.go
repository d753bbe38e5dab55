package wire

import (
	"errors"
	"fmt"
)

// Sentinels. Every decoding error matches ErrMalformed with errors.Is, except
// for TooLargeError and UnknownFlagsError, which a receiver treats differently.
var (
	// ErrMalformed: the bytes are not what their frame says they are. Sending
	// them again does not help.
	ErrMalformed = errors.New("malformed frame")
	// ErrBadMagic: the peer does not speak this protocol; close the stream.
	ErrBadMagic = fmt.Errorf("%w: bad magic", ErrMalformed)
	// ErrBadVersion: the peer speaks another version; close the stream.
	ErrBadVersion = fmt.Errorf("%w: unsupported version", ErrMalformed)
	// ErrShort: fewer bytes than the fixed part needs. On a stream that is
	// still open it means "wait for more".
	ErrShort = fmt.Errorf("%w: not enough bytes", ErrMalformed)
)

// DecodeError says which part of a frame could not be decoded.
type DecodeError struct {
	Part string // for example "header", "publish: key", "message subscribe"
	Err  error
}

func (e *DecodeError) Error() string { return "decode " + e.Part + ": " + e.Err.Error() }

func (e *DecodeError) Unwrap() error { return e.Err }

// UnknownFlagsError reports flag bits that this version does not know. The
// frame must be refused; its length is still good, so that a receiver can skip
// the body, answer and finish the stream.
type UnknownFlagsError struct {
	Flags Flags // only the unknown bits
}

func (e *UnknownFlagsError) Error() string {
	return fmt.Sprintf("unknown frame flags %#04x", uint16(e.Flags))
}

// FlagsError reports known flag bits in a combination that no frame has.
type FlagsError struct {
	Flags  Flags
	Reason string
}

func (e *FlagsError) Error() string {
	return fmt.Sprintf("impossible frame flags %#04x: %s", uint16(e.Flags), e.Reason)
}

// Is makes a FlagsError match ErrMalformed.
func (e *FlagsError) Is(target error) bool { return target == ErrMalformed }

// TooLargeError reports a frame whose payload is above the receiver's limit.
// Nothing of the payload was read.
type TooLargeError struct {
	Length uint32
	Limit  uint32
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("frame payload of %d bytes is above the limit of %d", e.Length, e.Limit)
}

// RecordTooLargeError names the record of a batch that is above a limit. The
// whole batch is to be refused; sending it again does not help.
type RecordTooLargeError struct {
	Index  int
	Length int
	Limit  int
}

func (e *RecordTooLargeError) Error() string {
	return fmt.Sprintf("record %d of the batch has %d bytes, above the limit of %d", e.Index, e.Length, e.Limit)
}

func decodeErr(part string, err error) error { return &DecodeError{Part: part, Err: err} }

func malformed(part, what string) error {
	return &DecodeError{Part: part, Err: fmt.Errorf("%w: %s", ErrMalformed, what)}
}
