package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
)

// The scanners here walk JSON that json.Valid has accepted, so that they only
// have to find boundaries. They keep nothing and allocate nothing; encoding/json
// would build maps and slices several times the size of a hostile frame.

// scanObject calls field with each key (quoted, as written) and value of the
// object at the top of b. It is false if b is no object.
func scanObject(b []byte, field func(key, value []byte)) bool {
	b = skipSpace(b)
	if len(b) == 0 || b[0] != '{' {
		return false
	}
	for b = skipSpace(b[1:]); len(b) > 0 && b[0] == '"'; {
		key, rest := cutValue(b)
		rest = skipSpace(rest)
		if len(rest) == 0 {
			return false
		}
		value, rest := cutValue(skipSpace(rest[1:])) // behind the colon
		field(key, value)
		b = skipComma(rest)
	}
	return true
}

// scanArray calls element with each value of the array at the top of b, until
// one fails.
func scanArray(b []byte, element func(value []byte) error) error {
	b = skipSpace(b)
	if len(b) == 0 || b[0] != '[' {
		return fmt.Errorf("%w: not an array", ErrMalformed)
	}
	for b = skipSpace(b[1:]); len(b) > 0 && b[0] != ']'; {
		value, rest := cutValue(b)
		if len(value) == 0 {
			return fmt.Errorf("%w: not JSON", ErrMalformed)
		}
		if err := element(value); err != nil {
			return err
		}
		b = skipComma(rest)
	}
	return nil
}

func skipSpace(b []byte) []byte { return bytes.TrimLeft(b, " \t\r\n") }

func skipComma(b []byte) []byte {
	b = skipSpace(b)
	if len(b) > 0 && b[0] == ',' {
		b = skipSpace(b[1:])
	}
	return b
}

// cutValue splits off the value that b starts with.
func cutValue(b []byte) (value, rest []byte) {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			for i++; i < len(b) && b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
			continue
		case '}', ']':
			depth--
			if depth < 0 { // end of the container around a bare value
				return b[:i], b[i:]
			}
		case ',', ':', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return b[:i], b[i:]
			}
			continue
		default:
			continue
		}
		if depth == 0 {
			i = min(i+1, len(b))
			return b[:i], b[i:]
		}
	}
	return b, nil
}

// text is what is between the quotes of a JSON string: a sub-slice, but for the
// rare string with an escape in it.
func text(v []byte) ([]byte, bool) {
	if len(v) < 2 || v[0] != '"' {
		return nil, false
	}
	if bytes.IndexByte(v, '\\') < 0 {
		return v[1 : len(v)-1], true
	}
	var s string
	err := json.Unmarshal(v, &s)
	return []byte(s), err == nil
}

// unquote copies what text finds.
func unquote(v []byte) (string, bool) {
	t, ok := text(v)
	return string(t), ok
}

// MarshalJSON is an array of base64 strings, one for each record.
func (r Records) MarshalJSON() ([]byte, error) {
	b := make([]byte, 0, 2+len(r.Bytes)*4/3+int(r.Count)*4)
	b = append(b, '[')
	for i, p := range r.All() {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '"')
		b = base64.StdEncoding.AppendEncode(b, p)
		b = append(b, '"')
	}
	return append(b, ']'), nil
}

// UnmarshalJSON lays the payloads out as one region. The region is about as
// large as the JSON it comes from, however many payloads there are.
func (r *Records) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*r = Records{}
		return nil
	}
	n, size := uint32(0), 0
	if err := scanArray(b, func(v []byte) error {
		n++
		size += recordOverhead + base64.StdEncoding.DecodedLen(len(v))
		return nil
	}); err != nil {
		return err
	}
	out := Records{Count: n, Bytes: make([]byte, 0, size)}
	if err := scanArray(b, func(v []byte) error {
		at := len(out.Bytes)
		out.Bytes = append(out.Bytes, 0, 0, 0, 0)
		var err error
		if out.Bytes, err = appendBase64(out.Bytes, v); err != nil {
			return err
		}
		binary.BigEndian.PutUint32(out.Bytes[at:], uint32(len(out.Bytes)-at-recordOverhead))
		return nil
	}); err != nil {
		return err
	}
	*r = out
	return nil
}

// appendBase64 appends what the quoted base64 string v stands for.
func appendBase64(dst, v []byte) ([]byte, error) {
	encoded, ok := text(v)
	if !ok {
		return dst, fmt.Errorf("%w: a payload is not a string", ErrMalformed)
	}
	dst, err := base64.StdEncoding.AppendDecode(dst, encoded)
	if err != nil {
		return dst, fmt.Errorf("%w: a payload is not base64: %w", ErrMalformed, err)
	}
	return dst, nil
}

// orEmpty keeps a nil byte string from being written as null.
func orEmpty(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
