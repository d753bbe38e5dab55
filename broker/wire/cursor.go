package wire

import (
	"encoding/binary"
	"strings"
	"unicode/utf8"
)

// cursor reads the fields of a binary body in order. After the first field
// that does not fit, everything reads as zero and bad names that field. It
// holds sub-slices only and allocates nothing.
type cursor struct {
	b   []byte
	bad string
}

func (c *cursor) take(n int, field string) []byte {
	if c.bad != "" {
		return nil
	}
	if n > len(c.b) {
		c.bad = field
		return nil
	}
	v := c.b[:n:n]
	c.b = c.b[n:]
	return v
}

func (c *cursor) u8(field string) uint8 {
	if v := c.take(1, field); v != nil {
		return v[0]
	}
	return 0
}

func (c *cursor) u16(field string) uint16 {
	if v := c.take(2, field); v != nil {
		return binary.BigEndian.Uint16(v)
	}
	return 0
}

func (c *cursor) u32(field string) uint32 {
	if v := c.take(4, field); v != nil {
		return binary.BigEndian.Uint32(v)
	}
	return 0
}

func (c *cursor) u64(field string) uint64 {
	if v := c.take(8, field); v != nil {
		return binary.BigEndian.Uint64(v)
	}
	return 0
}

// bytes16 reads a byte string behind its u16 length.
func (c *cursor) bytes16(field string) []byte {
	return c.take(int(c.u16(field)), field)
}

// text16 is bytes16 for UTF-8.
func (c *cursor) text16(field string) []byte {
	v := c.bytes16(field)
	if c.bad == "" && !utf8.Valid(v) {
		c.bad = field
	}
	return v
}

// append16 appends s behind its u16 length. A longer s is a broken invariant
// of the caller, who has checked it.
func append16[T ~string | ~[]byte](dst []byte, s T) []byte {
	if len(s) > 1<<16-1 {
		panic("wire: invariant: byte string fits its 16 bit length")
	}
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(s)))
	return append(dst, s...)
}

// clip makes s valid UTF-8 of at most n bytes. Texts are for people: a cut one
// is better than a frame that the peer refuses.
func clip(s string, n int) string {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
