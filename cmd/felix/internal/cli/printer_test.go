package cli

import (
	"bufio"
	"bytes"
	"testing"

	"felix.dev/felix/client"
)

func TestPrinter(t *testing.T) {
	for _, c := range []struct {
		output string
		event  client.Event
		want   string
	}{
		{"text", client.Event{Payload: []byte("a<b")}, "a<b\n"},
		{"text", client.Event{}, "\n"},
		{"raw", client.Event{Payload: []byte("a")}, "a"},
		{"json", client.Event{Offset: 7, HasOffset: true, Payload: []byte("a<b\n")}, `{"offset":7,"shard":3,"payload":"a<b\n"}` + "\n"},
		{"json", client.Event{HasOffset: true, Gap: 2}, `{"offset":0,"shard":3,"gap":2,"payload":""}` + "\n"},
		{"json", client.Event{Payload: []byte{0xff}}, `{"shard":3,"payload_base64":"/w=="}` + "\n"},
	} {
		var out bytes.Buffer
		w := bufio.NewWriter(&out)
		if err := newPrinter(c.output).print(w, 3, c.event); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		if out.String() != c.want {
			t.Errorf("%s: got %q, want %q", c.output, out.String(), c.want)
		}
	}
}
