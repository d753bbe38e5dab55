package peer

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

func TestGreetingsThatAreWrong(t *testing.T) {
	good := hello{kind: KindCall, cluster: "c", from: "a", to: "b", target: "t"}
	change := func(f func(b []byte) []byte) []byte { return f(good.bytes()) }
	long := hello{from: string(bytes.Repeat([]byte("a"), maxName+1))}
	nobody := hello{to: "b"}
	for _, c := range []struct {
		name    string
		text    []byte
		is      error
		version bool
	}{
		{name: "good", text: good.bytes()},
		{name: "fields of a later version", text: change(func(b []byte) []byte { b[13] += 3; return append(b, "new"...) })},
		{name: "magic", text: change(func(b []byte) []byte { b[0]++; return b }), is: ErrProtocol},
		{name: "version", text: change(func(b []byte) []byte { b[9]++; return b }), is: ErrProtocol, version: true},
		{name: "size", text: change(func(b []byte) []byte { b[12] = 0xff; return b }), is: ErrProtocol},
		{name: "field beyond the end", text: change(func(b []byte) []byte { b[14] = 0xff; return b }), is: ErrProtocol},
		{name: "fields missing", text: change(func(b []byte) []byte { b[13] = 5; return b }), is: ErrProtocol},
		{name: "name too long", text: long.bytes(), is: ErrProtocol},
		{name: "from nobody", text: nobody.bytes(), is: ErrProtocol},
		{name: "nothing", is: io.EOF},
	} {
		_, err := readHello(bytes.NewReader(c.text))
		if !errors.Is(err, c.is) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.is)
		}
		var version versionError
		if errors.As(err, &version) != c.version {
			t.Errorf("%s: got %v, want one about the version: %t", c.name, err, c.version)
		}
	}
}

// TestAnswersOfLaterVersions: why they refuse is understood, that they do not is not.
func TestAnswersOfLaterVersions(t *testing.T) {
	for _, reason := range []Reason{0, RefusedVersion} {
		a := answer{reason: reason, node: "b"}
		text := a.bytes()
		text[9] = 2
		got, err := readAnswer(bytes.NewReader(text))
		if got.reason != reason || (err == nil) != (reason != 0) || err != nil && !errors.Is(err, ErrProtocol) {
			t.Errorf("%v: got %+v, %v", reason, got, err)
		}
	}
}
