package wire

import (
	"errors"
	"testing"
)

// TestInvalidVectors: each refused frame of the vectors, with the error that
// tells a receiver what to do.
func TestInvalidVectors(t *testing.T) {
	is := func(target error) func(*testing.T, error) {
		return func(t *testing.T, err error) {
			t.Helper()
			if !errors.Is(err, target) {
				t.Errorf("error %v, want %v", err, target)
			}
		}
	}
	flags := func(t *testing.T, err error) {
		t.Helper()
		if _, ok := errors.AsType[*FlagsError](err); !ok || !errors.Is(err, ErrMalformed) {
			t.Errorf("error %v, want a FlagsError", err)
		}
	}
	checks := map[string]func(*testing.T, error){
		"bad_magic":   is(ErrBadMagic),
		"bad_version": is(ErrBadVersion),
		"unknown_flag": func(t *testing.T, err error) {
			t.Helper()
			if u, ok := errors.AsType[*UnknownFlagsError](err); !ok || u.Flags != 0x8000 {
				t.Errorf("error %v, want UnknownFlagsError of 0x8000", err)
			}
		},
		"skip_without_offsets":     flags,
		"idempotent_without_acked": flags,
		"acked_mode_zero":          is(ErrMalformed),
		"count_too_large":          is(ErrMalformed),
		"payload_truncated":        is(ErrMalformed),
		"offset_on_failed_ack":     is(ErrMalformed),
		"header_only":              is(ErrShort),
	}
	for _, v := range loadVectors(t).Invalid {
		t.Run(v.Name, func(t *testing.T) {
			check, ok := checks[v.Name]
			if !ok {
				t.Fatal("no expectation for this vector")
			}
			err := decodeWhole(unhex(t, v.Hex))
			if err == nil {
				t.Fatal("accepted")
			}
			if _, ok := errors.AsType[*DecodeError](err); !ok {
				t.Errorf("%T is not a DecodeError", err)
			}
			check(t, err)
		})
	}
}

// decodeWhole decodes one frame as a receiver does.
func decodeWhole(frame []byte) error {
	h, err := ParseHeader(frame)
	if err != nil {
		return err
	}
	payload := frame[HeaderLen:]
	if len(payload) < int(h.Length) {
		return decodeErr("frame", ErrShort) // what frameio waits for
	}
	_, err = reencode(h, payload)
	return err
}

// A refused acked publish is answered, so its request id must come out.
func TestFailedPublishKeepsRequestID(t *testing.T) {
	good := AppendPublish(nil, &Publish{
		Acked: true, RequestID: 6, AckMode: AckPerMessage, Idempotent: true, ProducerID: 7, Sequence: 8, Keyed: true, Key: []byte("k"),
		Tenant: []byte("t1"), Namespace: []byte("default"), Stream: []byte("demo"), Records: RecordsOf([]byte("hello")),
	})
	h, payload := splitFrame(t, good)
	for cut := range payload {
		p, err := DecodePublish(h.Flags, payload[:cut])
		if !errors.Is(err, ErrMalformed) {
			t.Fatalf("cut at %d: error %v", cut, err)
		}
		if want := cut >= 8; p.Acked != want || (p.RequestID == 6) != want {
			t.Errorf("cut at %d: acked %v, request %d", cut, p.Acked, p.RequestID)
		}
		if p.Records.Count != 0 || p.Tenant != nil {
			t.Errorf("cut at %d: a refused publish has content", cut)
		}
	}
	if _, err := DecodePublish(h.Flags, append(payload, 0)); !errors.Is(err, ErrMalformed) {
		t.Errorf("bytes left over: error %v", err)
	}
	payload[8] = 3
	if p, err := DecodePublish(h.Flags, payload); !errors.Is(err, ErrMalformed) || p.RequestID != 6 {
		t.Errorf("ack mode 3: %+v, %v", p, err)
	}
}

// Every body cut at every place is refused, none panics.
func TestTruncatedBodies(t *testing.T) {
	for _, v := range loadVectors(t).Vectors {
		frame := unhex(t, v.Hex)
		h, payload := splitFrame(t, frame)
		for cut := range payload {
			if _, err := reencode(Header{Flags: h.Flags, Length: uint32(cut)}, payload[:cut]); !errors.Is(err, ErrMalformed) {
				t.Errorf("%s cut at %d: error %v", v.Name, cut, err)
			}
		}
		if h.Flags != 0 {
			if _, err := reencode(h, append(payload, 0)); !errors.Is(err, ErrMalformed) {
				t.Errorf("%s with a byte more: error %v", v.Name, err)
			}
		}
	}
}

func TestNamesMustBeUTF8(t *testing.T) {
	p := Publish{Tenant: []byte("t1"), Namespace: []byte("n"), Stream: []byte{0xff}, Records: RecordsOf([]byte("x"))}
	h, payload := splitFrame(t, AppendPublish(nil, &p))
	if _, err := DecodePublish(h.Flags, payload); !errors.Is(err, ErrMalformed) {
		t.Errorf("stream name: error %v", err)
	}
	if _, err := DecodeMessage([]byte("{\"type\":\"ok\",\"x\":\"\xff\"}")); !errors.Is(err, ErrMalformed) {
		t.Errorf("message: error %v", err)
	}
}
