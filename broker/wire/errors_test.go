package wire

import (
	"errors"
	"testing"
)

// A receiver tells by errors.Is and errors.As what to do; people read the text.
func TestErrors(t *testing.T) {
	for _, tt := range []struct {
		err       error
		text      string
		malformed bool
	}{
		{decodeErr("header", &UnknownFlagsError{Flags: 0x8000}), "decode header: unknown frame flags 0x8000", false},
		{flagsErr(0x0101, "idempotent without acked"), "decode flags: impossible frame flags 0x0101: idempotent without acked", true},
		{&TooLargeError{Length: 5, Limit: 4}, "frame payload of 5 bytes is above the limit of 4", false},
		{&RecordTooLargeError{Index: 1, Length: 5, Limit: 4}, "record 1 of the batch has 5 bytes, above the limit of 4", false},
		{publishErr("key"), "decode publish: malformed frame: bad key", true},
		{ErrBadMagic, "malformed frame: bad magic", true},
		{ErrBadVersion, "malformed frame: unsupported version", true},
		{ErrShort, "malformed frame: not enough bytes", true},
	} {
		if tt.err.Error() != tt.text || errors.Is(tt.err, ErrMalformed) != tt.malformed {
			t.Errorf("%q (malformed %v), want %q (%v)", tt.err, errors.Is(tt.err, ErrMalformed), tt.text, tt.malformed)
		}
	}
	if got := Routing(7).String(); got != "routing_7" {
		t.Errorf("routing %q", got)
	}
}
