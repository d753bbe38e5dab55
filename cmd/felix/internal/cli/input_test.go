package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"felix.dev/felix/broker/wire"
	"felix.dev/felix/client"
)

func TestInput(t *testing.T) {
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
	if err := errors.Join(os.WriteFile(one, []byte("a\nb\r\n\nlast"), 0o600), os.WriteFile(two, []byte("k=v=w\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	plain := func(payloads ...string) []client.Message {
		var all []client.Message
		for _, p := range payloads {
			all = append(all, client.Message{Payload: []byte(p)})
		}
		return all
	}
	for _, c := range []struct {
		name string
		in   input
		want []client.Message
		err  string
	}{
		{name: "arguments", in: input{args: []string{"x", ""}}, want: plain("x", "")},
		{name: "standard input", in: input{stdin: strings.NewReader("1\n2\n")}, want: plain("1", "2")},
		{name: "empty input", in: input{stdin: strings.NewReader("")}},
		{name: "lines of files", in: input{files: []string{one, two}}, want: plain("a", "b\r", "", "last", "k=v=w")},
		{name: "a file and standard input", in: input{files: []string{two, "-"}, stdin: strings.NewReader("x")}, want: plain("k=v=w", "x")},
		{name: "whole files", in: input{files: []string{one}, whole: true}, want: plain("a\nb\r\n\nlast")},
		{
			name: "one key", in: input{args: []string{"x"}, key: []byte{}, keyed: true},
			want: []client.Message{{Key: []byte{}, Keyed: true, Payload: []byte("x")}},
		},
		{
			name: "own keys", in: input{files: []string{two}, separator: "="},
			want: []client.Message{{Key: []byte("k"), Keyed: true, Payload: []byte("v=w")}},
		},
		{name: "no key", in: input{files: []string{one}, separator: "="}, err: one + ", line 1: no \"=\""},
		{name: "no file", in: input{files: []string{"/nowhere"}}, err: "/nowhere"},
		{
			name: "a line too long", in: input{stdin: strings.NewReader("ok\n" + strings.Repeat("x", wire.MaxRecord+1) + "\n")},
			want: plain("ok"), err: "standard input, line 2: longer than",
		},
		{name: "the longest line", in: input{stdin: strings.NewReader(strings.Repeat("x", wire.MaxRecord) + "\n")}, want: plain(strings.Repeat("x", wire.MaxRecord))},
		{name: "a file too long", in: input{stdin: strings.NewReader(strings.Repeat("x", wire.MaxRecord+1)), whole: true}, err: "longer than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []client.Message
			err := c.in.each(func(m client.Message) error {
				got = append(got, m)
				return nil
			})
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("error %v, want %q", err, c.err)
			}
			if diff := cmp.Diff(shortened(got), shortened(c.want)); diff != "" {
				t.Errorf("(-got +want)\n%s", diff)
			}
		})
	}

	stop := errors.New("enough")
	in := input{args: []string{"x", "y"}}
	if err := in.each(func(client.Message) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("got %v, want what take said", err)
	}
}

// shortened says of a long payload only how long it is.
func shortened(messages []client.Message) []client.Message {
	for i, m := range messages {
		if len(m.Payload) > 100 {
			messages[i].Payload = fmt.Appendf(nil, "%d bytes", len(m.Payload))
		}
	}
	return messages
}
