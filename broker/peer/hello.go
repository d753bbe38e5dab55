package peer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// magic begins a hello and its answer, version is the layout of what follows.
// docs/format/peer.md has the layouts.
const (
	magic        = "FELIXPER"
	helloVersion = 1

	helloHeader = 14
	// maxHello bounds what follows the header, with room for fields of later versions.
	maxHello = 4096
)

// hello is what the dialing side says first.
type hello struct {
	kind    Kind
	cluster string
	from    string
	to      string // "": whoever is there
	target  string
}

// answer is what the other side says to a hello.
type answer struct {
	reason  Reason // 0: the connection is open
	node    string
	cluster string
	message string
}

func (h *hello) bytes() []byte {
	return greeting(byte(h.kind), h.cluster, h.from, h.to, h.target)
}

func (a *answer) bytes() []byte {
	return greeting(byte(a.reason), a.node, a.cluster, a.message)
}

func readHello(r io.Reader) (hello, error) {
	kind, f, err := readGreeting(r)
	if err != nil {
		return hello{}, err
	}
	h := hello{kind: Kind(kind), cluster: f.next(maxName), from: f.next(maxName), to: f.next(maxName), target: f.next(maxTarget)}
	if f.bad || h.from == "" {
		return hello{}, fmt.Errorf("%w: a field of the hello is cut short or too long", ErrProtocol)
	}
	return h, nil
}

func readAnswer(r io.Reader) (answer, error) {
	reason, f, err := readGreeting(r)
	_, otherVersion := errors.AsType[versionError](err)
	switch {
	case otherVersion && reason != 0:
		// Why it was refused can be told of every version.
		return answer{reason: Reason(reason), message: err.Error()}, nil
	case err != nil:
		return answer{}, err
	}
	a := answer{reason: Reason(reason), node: f.next(maxName), cluster: f.next(maxName), message: f.next(maxHello)}
	if f.bad {
		return answer{}, fmt.Errorf("%w: a field of the answer is cut short or too long", ErrProtocol)
	}
	return a, nil
}

// greeting is the layout that a hello and an answer share.
func greeting(code byte, fields ...string) []byte {
	size := 0
	for _, f := range fields {
		size += 2 + len(f)
	}
	b := append(make([]byte, 0, helloHeader+size), magic...)
	b = binary.BigEndian.AppendUint16(b, helloVersion)
	b = append(b, code, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(size))
	for _, f := range fields {
		b = binary.BigEndian.AppendUint16(b, uint16(len(f)))
		b = append(b, f...)
	}
	return b
}

// versionError is a greeting of a version that is not known here.
type versionError uint16

func (e versionError) Error() string {
	return fmt.Sprintf("version %d of the protocol; this broker knows %d", uint16(e), helloVersion)
}

func (e versionError) Is(target error) bool { return target == ErrProtocol }

// readGreeting gives the code also with a versionError.
func readGreeting(r io.Reader) (code byte, f fields, err error) {
	var header [helloHeader]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return 0, fields{}, err
	}
	if string(header[:len(magic)]) != magic {
		return 0, fields{}, fmt.Errorf("%w: it begins with %q", ErrProtocol, header[:len(magic)])
	}
	size := int(binary.BigEndian.Uint16(header[12:]))
	if size > maxHello {
		return 0, fields{}, fmt.Errorf("%w: a greeting of %d bytes", ErrProtocol, size)
	}
	rest := make([]byte, size)
	if _, err := io.ReadFull(r, rest); err != nil {
		return 0, fields{}, err
	}
	if v := binary.BigEndian.Uint16(header[8:]); v != helloVersion {
		return header[10], fields{}, versionError(v)
	}
	return header[10], fields{rest: rest}, nil
}

// fields are the strings of a greeting. What follows those that are asked for is of
// a later version and ignored.
type fields struct {
	rest []byte
	bad  bool
}

func (f *fields) next(most int) string {
	if f.bad || len(f.rest) < 2 {
		f.bad = true
		return ""
	}
	n := int(binary.BigEndian.Uint16(f.rest))
	if n > most || n > len(f.rest)-2 {
		f.bad = true
		return ""
	}
	s := string(f.rest[2 : 2+n])
	f.rest = f.rest[2+n:]
	return s
}
