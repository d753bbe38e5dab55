package wire

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// vectorFile is testdata/wire-vectors.json.
type vectorFile struct {
	Vectors []vector `json:"vectors"`
	Invalid []struct {
		Name string `json:"name"`
		Hex  string `json:"hex"`
	} `json:"invalid"`
	Routing []struct {
		KeyHex    string            `json:"key_hex"`
		FNV       string            `json:"fnv1a64"`
		Finalized string            `json:"finalized"`
		Modulo    map[string]uint32 `json:"modulo"`
		Jump      map[string]uint32 `json:"jump_hash"`
	} `json:"routing"`
}

type vector struct {
	Name    string          `json:"name"`
	Flags   string          `json:"flags"`
	Hex     string          `json:"hex"`
	Decoded json.RawMessage `json:"decoded"`
}

// decodedBody is the "decoded" object of a binary vector.
type decodedBody struct {
	TenantID   string   `json:"tenant_id"`
	Namespace  string   `json:"namespace"`
	Stream     string   `json:"stream"`
	Payloads   []string `json:"payloads_utf8"`
	Key        *string  `json:"key_utf8"`
	RequestID  *uint64  `json:"request_id"`
	Ack        string   `json:"ack"`
	ProducerID *uint64  `json:"producer_id"`
	Sequence   uint64   `json:"sequence"`

	Status  string       `json:"status"`
	Message string       `json:"message"`
	Code    string       `json:"code"`
	Retry   string       `json:"retry"`
	Detail  *ErrorDetail `json:"detail"`
	Offset  *uint64      `json:"offset"`
	Owner   *struct {
		NodeID     string `json:"node_id"`
		Addr       string `json:"addr"`
		Generation uint64 `json:"generation"`
	} `json:"owner"`

	SubscriptionID *uint64  `json:"subscription_id"`
	BaseOffset     *uint64  `json:"base_offset"`
	Skipped        *uint64  `json:"skipped_before"`
	Publisher      *string  `json:"publisher"`
	Times          []uint64 `json:"timestamps_micros"`
}

func loadVectors(t testing.TB) vectorFile {
	t.Helper()
	b, err := os.ReadFile("testdata/wire-vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var f vectorFile
	if err := json.Unmarshal(b, &f); err != nil {
		t.Fatal(err)
	}
	return f
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// splitFrame checks the header of a whole frame.
func splitFrame(t testing.TB, frame []byte) (Header, []byte) {
	t.Helper()
	h, err := ParseHeader(frame)
	if err != nil {
		t.Fatal(err)
	}
	if int(h.Length) != len(frame)-HeaderLen {
		t.Fatalf("length %d, payload has %d bytes", h.Length, len(frame)-HeaderLen)
	}
	return h, frame[HeaderLen:]
}

// reencode decodes a whole frame and encodes what it found.
func reencode(h Header, payload []byte) ([]byte, error) {
	kind, err := h.Kind()
	if err != nil {
		return nil, err
	}
	switch kind {
	case KindPublish:
		p, err := DecodePublish(h.Flags, payload)
		if err != nil {
			return nil, err
		}
		return AppendPublish(nil, &p), nil
	case KindAck:
		a, err := DecodeAck(h.Flags, payload)
		if err != nil {
			return nil, err
		}
		return AppendAck(nil, &a), nil
	case KindEvents, KindEventsLegacy:
		e, err := DecodeEvents(h.Flags, payload)
		if err != nil {
			return nil, err
		}
		return AppendEvents(nil, &e), nil
	case KindMessage:
	}
	m, err := DecodeMessage(payload)
	if err != nil {
		return nil, err
	}
	return AppendMessage(nil, m), nil
}

func TestVectors(t *testing.T) {
	for _, v := range loadVectors(t).Vectors {
		t.Run(v.Name, func(t *testing.T) {
			frame := unhex(t, v.Hex)
			h, payload := splitFrame(t, frame)
			if flags, err := strconv.ParseUint(v.Flags, 0, 16); err != nil || h.Flags != Flags(flags) {
				t.Fatalf("flags %#04x, want %s (%v)", uint16(h.Flags), v.Flags, err)
			}
			if h.Flags == 0 {
				m, err := DecodeMessage(payload)
				if err != nil {
					t.Fatal(err)
				}
				if u, ok := m.(*Unknown); ok {
					checkUnknownVector(t, v, u)
					return
				}
			} else {
				checkBodyVector(t, v, h.Flags, payload)
			}
			got, err := reencode(h, payload)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(frame), string(got)); diff != "" {
				t.Errorf("decoded and encoded again (-want +got):\n%s", diff)
			}
		})
	}
}

// checkUnknownVector is for the cache and group messages.
func checkUnknownVector(t *testing.T, v vector, u *Unknown) {
	t.Helper()
	var want struct {
		Type      string  `json:"type"`
		RequestID *uint64 `json:"request_id"`
	}
	if err := json.Unmarshal(v.Decoded, &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&Unknown{Type: want.Type, RequestID: want.RequestID}, u); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if !strings.HasPrefix(u.Type, "cache_") && !strings.HasPrefix(u.Type, "group_") && !strings.HasPrefix(u.Type, "counter_") {
		t.Errorf("%s is not implemented", u.Type)
	}
}

func checkBodyVector(t *testing.T, v vector, f Flags, payload []byte) {
	t.Helper()
	var want decodedBody
	if err := json.Unmarshal(v.Decoded, &want); err != nil {
		t.Fatal(err)
	}
	kind, err := f.Kind()
	if err != nil {
		t.Fatal(err)
	}
	var got decodedBody
	switch kind {
	case KindPublish:
		got = describePublish(t, f, payload)
	case KindAck:
		got = describeAck(t, f, payload)
		if want.Detail != nil && got.Detail == nil {
			t.Error("no detail")
		}
	case KindEvents, KindEventsLegacy:
		got = describeEvents(t, f, payload)
	default:
		t.Fatalf("kind %v", kind)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func describePublish(t *testing.T, f Flags, payload []byte) decodedBody {
	t.Helper()
	p, err := DecodePublish(f, payload)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Check(); err != nil {
		t.Error(err)
	}
	d := decodedBody{TenantID: string(p.Tenant), Namespace: string(p.Namespace), Stream: string(p.Stream)}
	for _, r := range p.Records.All() {
		d.Payloads = append(d.Payloads, string(r))
	}
	if p.Keyed {
		d.Key = new(string(p.Key))
	}
	if p.Acked {
		d.RequestID, d.Ack = &p.RequestID, p.AckMode.String()
	}
	if p.Idempotent {
		d.ProducerID, d.Sequence = &p.ProducerID, p.Sequence
	}
	return d
}

func describeAck(t *testing.T, f Flags, payload []byte) decodedBody {
	t.Helper()
	a, err := DecodeAck(f, payload)
	if err != nil {
		t.Fatal(err)
	}
	d := decodedBody{Status: "error", RequestID: &a.RequestID, Message: a.Message}
	if a.OK {
		d.Status = "ok"
	}
	if a.HasCode {
		d.Code, d.Retry = a.Code.String(), a.Retry.String()
	}
	if a.HasDetail {
		d.Detail = &ErrorDetail{Reason: a.Reason, RetryAfterMS: a.RetryAfterMS}
	}
	if a.HasOffset {
		d.Offset = &a.Offset
	}
	if a.HasOwner {
		d.Owner = &struct {
			NodeID     string `json:"node_id"`
			Addr       string `json:"addr"`
			Generation uint64 `json:"generation"`
		}{a.OwnerNode, a.OwnerAddr, a.Generation}
	}
	return d
}

func describeEvents(t *testing.T, f Flags, payload []byte) decodedBody {
	t.Helper()
	e, err := DecodeEvents(f, payload)
	if err != nil {
		t.Fatal(err)
	}
	var d decodedBody
	for _, ev := range e.Each() {
		d.Payloads = append(d.Payloads, string(ev.Payload))
		if e.HasTimes {
			d.Times = append(d.Times, ev.TimeMicros)
		}
	}
	if e.Legacy {
		d.SubscriptionID = &e.SubscriptionID
	}
	if e.HasOffsets {
		d.BaseOffset = &e.Base
	}
	if e.HasSkipped {
		d.Skipped = &e.Skipped
	}
	if e.HasPublisher {
		d.Publisher = new(string(e.Publisher))
	}
	return d
}

// TestMessageVectors compares messages with the "decoded" object, field by
// field, so that a mistake made alike in both directions shows.
func TestMessageVectors(t *testing.T) {
	for _, v := range loadVectors(t).Vectors {
		frame := unhex(t, v.Hex)
		h, payload := splitFrame(t, frame)
		if h.Flags != 0 {
			continue
		}
		t.Run(v.Name, func(t *testing.T) {
			m, err := DecodeMessage(payload)
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := m.(*Unknown); ok {
				return
			}
			_, encoded := splitFrame(t, AppendMessage(nil, m))
			var want, got map[string]any
			if err := json.Unmarshal(v.Decoded, &want); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(encoded, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestRoutingVectors(t *testing.T) {
	for _, v := range loadVectors(t).Routing {
		key := unhex(t, v.KeyHex)
		if got, want := fnv1a64(key), v.FNV; strconv.FormatUint(got, 16) != strings.TrimLeft(want[2:], "0") {
			t.Errorf("fnv1a64(%x) = %x, want %s", key, got, want)
		}
		if got, want := finalize(fnv1a64(key)), v.Finalized; strconv.FormatUint(got, 16) != strings.TrimLeft(want[2:], "0") {
			t.Errorf("finalize(%x) = %x, want %s", key, got, want)
		}
		for routing, shards := range map[Routing]map[string]uint32{RoutingModulo: v.Modulo, RoutingJump: v.Jump} {
			if len(shards) == 0 {
				t.Fatalf("no %v vectors for %x", routing, key)
			}
			for n, want := range shards {
				count, err := strconv.ParseUint(n, 10, 32)
				if err != nil {
					t.Fatal(err)
				}
				if got := ShardOf(key, true, uint32(count), routing); got != want {
					t.Errorf("ShardOf(%x, %d, %v) = %d, want %d", key, count, routing, got, want)
				}
				if got := ShardOf(key, false, uint32(count), routing); got != 0 {
					t.Errorf("ShardOf without a key = %d, want 0", got)
				}
			}
		}
	}
}
