package peer

import (
	"bytes"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestGolden holds the bytes against files that stay for ever; docs/format/peer.md explains them.
func TestGolden(t *testing.T) {
	h := hello{kind: KindRaft, cluster: "c0ffee", from: "felix-0", to: "felix-1", target: "3/0badf00d"}
	opened := answer{node: "felix-1", cluster: "c0ffee"}
	refused := answer{reason: RefusedCluster, node: "felix-1", cluster: "decaf", message: "no"}
	call := request{within: 1500 * time.Millisecond, method: "catalog.propose", body: []byte(`{"a":1}`)}
	readCall := func(r io.Reader) (any, error) { return readRequest(r, 100, nil) }
	readOpen := func(r io.Reader) (any, error) { return readAnswer(r) }
	readCallResult := func(r io.Reader) (any, error) { return readResult(r, 100) }

	for _, c := range []struct {
		name    string
		written []byte
		value   any
		read    func(r io.Reader) (any, error)
	}{
		{"hello", h.bytes(), h, func(r io.Reader) (any, error) { return readHello(r) }},
		{"answer-open", opened.bytes(), opened, readOpen},
		{"answer-refused", refused.bytes(), refused, readOpen},
		{"call", call.bytes(), call, readCall},
		{"result", resultBytes(answerOK, []byte(`{"b":2}`)), result{body: []byte(`{"b":2}`)}, readCallResult},
		{
			"failure", failure(&Error{Code: "not_leader", Message: "ask c", Retry: true}),
			result{failed: true, body: []byte(`{"code":"not_leader","message":"ask c","retry":true}`)},
			readCallResult,
		},
	} {
		golden, err := os.ReadFile(filepath.Join("testdata", c.name+"-v1.bin"))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(c.written, golden) {
			t.Errorf("%s: written\n %q, want\n %q", c.name, c.written, golden)
		}
		got, err := c.read(bytes.NewReader(golden))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if diff := cmp.Diff(got, c.value, cmp.AllowUnexported(hello{}, answer{}, request{}, result{})); diff != "" {
			t.Errorf("%s (-got +want)\n%s", c.name, diff)
		}
		for n := range len(golden) {
			if _, err := c.read(bytes.NewReader(golden[:n])); err == nil {
				t.Errorf("%s: %d of %d bytes are taken for all", c.name, n, len(golden))
			}
		}
	}
}

func TestFrames(t *testing.T) {
	long := request{within: math.MaxInt64, method: "m", body: []byte("{}")}
	if r, err := readRequest(bytes.NewReader(long.bytes()), 10, nil); err != nil || r.within < 49*24*time.Hour {
		t.Errorf("got %v, %v", r.within, err)
	}
	late := request{within: -1, method: "m", body: []byte("{}")}
	if r, err := readRequest(bytes.NewReader(late.bytes()), 10, nil); err != nil || r.within != time.Millisecond {
		t.Errorf("got %v, %v: no time left is not any time", r.within, err)
	}
	for name, text := range map[string]string{
		"no room for a header": "\x00\x00\x00\x04\x00\x00\x00\x00",
		"method beyond":        "\x00\x00\x00\x05\x00\x00\x00\x00\x01",
	} {
		if _, err := readRequest(bytes.NewReader([]byte(text)), 10, nil); !errors.Is(err, ErrProtocol) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := readRequest(bytes.NewReader(long.bytes()), 1, nil); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a body of 2 bytes where 1 may be: %v", err)
	}
	for name, text := range map[string]string{"empty": "\x00\x00\x00\x00", "status": "\x00\x00\x00\x01\x02"} {
		if _, err := readResult(bytes.NewReader([]byte(text)), 10); !errors.Is(err, ErrProtocol) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	bad := result{failed: true, body: []byte("x")}
	if err := bad.decode(nil); !errors.Is(err, ErrProtocol) || !errors.Is(err, ErrUnanswered) {
		t.Errorf("got %v", err)
	}

	// What is announced is not what memory is taken for.
	announced := append([]byte{0x03, 0xff, 0xff, 0xff}, 'x')
	if r, err := readFrame(bytes.NewReader(announced), maxFrame, nil); !errors.Is(err, io.ErrUnexpectedEOF) || cap(r) > 4096 {
		t.Errorf("got %d bytes, %v", cap(r), err)
	}
	asked := 0
	refuse := func(n int) error { asked = n; return io.ErrClosedPipe }
	if _, err := readFrame(bytes.NewReader(announced), maxFrame, refuse); !errors.Is(err, io.ErrClosedPipe) || asked != 0x03ffffff {
		t.Errorf("asked for %d bytes, got %v", asked, err)
	}
}
