package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"felix.dev/felix/broker/wire"
)

func TestFrameScanner(t *testing.T) {
	var in []byte
	in = wire.AppendMessage(in, &wire.Auth{TenantID: "t1", Token: "secret"})
	in = wire.AppendPublish(in, &wire.Publish{
		Acked: true, RequestID: 7, AckMode: 1, Tenant: []byte("t1"), Namespace: []byte("n"), Stream: []byte("s"),
		Records: wire.Records{Count: 1, Bytes: wire.AppendRecord(nil, []byte("hello"))},
	})
	in = append(in, wire.AppendHeader(nil, wire.FlagEvents, 0)...)
	in = append(in, wire.AppendHeader(nil, wire.FlagPublish|wire.FlagAck, 3)...)
	in = append(in, "abc"...)
	whole := len(in)
	in = append(in, wire.AppendHeader(nil, wire.FlagEvents, 9)...)
	in = append(in, "rest"...)
	want := []string{
		`{"type":"auth","tenant_id":"t1","token":"(hidden)"} (49 bytes)`,
		"publish, flags 0x0009, 32 bytes: 00 00 00 00 00 00 00 07",
		"events, flags 0x0004, 0 bytes: ",
		"flags 0x0011, 3 bytes: decode flags: impossible frame flags 0x0011: more than one kind of frame",
	}

	for _, step := range []int{1, 2, 11, 12, 13, 50, whole, len(in)} {
		var got []string
		f := &frameScanner{emit: func(s string) { got = append(got, s) }, show: 8}
		for rest := in; len(rest) > 0; {
			n := min(step, len(rest))
			f.feed(rest[:n])
			rest = rest[n:]
		}
		if diff := cmp.Diff(got, want); diff != "" {
			t.Errorf("in steps of %d (-got +want)\n%s", step, diff)
		}
		if got, want := f.rest(), " inside a frame with flags 0x0004, 5 bytes missing"; got != want {
			t.Errorf("in steps of %d: rest is %q, want %q", step, got, want)
		}
	}
}

func TestFrameScannerLosesTheBoundary(t *testing.T) {
	var got []string
	f := &frameScanner{emit: func(s string) { got = append(got, s) }, show: 8}
	f.feed([]byte("GET / HTTP/1.1\r\nHost: x\r\n"))
	f.feed([]byte("more"))
	if len(got) != 1 || !strings.Contains(got[0], "not a frame") {
		t.Errorf("got %q, want one line that says that this is no frame", got)
	}
	if rest := f.rest(); rest != "" {
		t.Errorf("rest is %q, want nothing", rest)
	}
}
