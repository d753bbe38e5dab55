package wire

import (
	"errors"
	"fmt"
	"math/bits"
	"testing"
)

// frameKinds is one good frame of every kind with every modifier that kind has.
var frameKinds = map[string]Flags{
	"message":            0,
	"publish":            FlagPublish,
	"publish everything": FlagPublish | publishModifiers,
	"ack ok":             FlagAck | FlagAckOwner | FlagAckOffset,
	"ack failed":         FlagAck | FlagAckCode | FlagAckDetail,
	"events":             FlagEvents | eventModifiers,
	"events plain":       FlagEvents,
	"legacy events":      FlagEventsLegacy | eventModifiers,
}

// decoders are all functions that take flags from the wire.
func decodeAll(f Flags) map[string]error {
	payload := make([]byte, 64)
	errs := map[string]error{}
	_, errs["ParseHeader"] = ParseHeader(AppendHeader(nil, f, 0))
	_, errs["Kind"] = f.Kind()
	_, errs["DecodePublish"] = DecodePublish(f, payload)
	_, errs["DecodeAck"] = DecodeAck(f, payload)
	_, errs["DecodeEvents"] = DecodeEvents(f, payload)
	return errs
}

// TestB54ReservedBits: B54. Each bit that no frame has, on each kind of frame:
// a typed refusal that names the bit, by every decoder.
func TestB54ReservedBits(t *testing.T) {
	reserved := ^KnownFlags
	if bits.OnesCount16(uint16(reserved)) != 1 {
		t.Fatalf("reserved bits %#04x; this table was made for one", uint16(reserved))
	}
	for name, f := range frameKinds {
		if _, err := f.Kind(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for bit := Flags(1); bit != 0; bit <<= 1 {
			if !reserved.Has(bit) {
				continue
			}
			for where, err := range decodeAll(f | bit) {
				if u, ok := errors.AsType[*UnknownFlagsError](err); !ok || u.Flags != bit {
					t.Errorf("%s with %#04x: %s: error %v", name, uint16(bit), where, err)
				}
			}
			h, _ := ParseHeader(AppendHeader(nil, f|bit, 77))
			if h.Flags != f|bit || h.Length != 77 {
				t.Errorf("%s: header %+v is not filled beside the error", name, h)
			}
		}
	}
}

// TestB54EveryCombination: B54. Of the 65536 flag words exactly those with one
// leading bit and its own modifiers are frames; all others are refused with a
// typed error, none panics.
func TestB54EveryCombination(t *testing.T) {
	counts := map[Kind]int{}
	for w := range 1 << 16 {
		f := Flags(w)
		kind, err := f.Kind()
		if err == nil {
			counts[kind]++
			continue
		}
		_, unknown := errors.AsType[*UnknownFlagsError](err)
		_, impossible := errors.AsType[*FlagsError](err)
		if unknown == impossible || kind != 0 || unknown != (f&^KnownFlags != 0) {
			t.Fatalf("%#04x: kind %v, error %v", w, kind, err)
		}
	}
	want := map[Kind]int{
		KindMessage:      1,
		KindPublish:      2 * 3,       // keyed or not; unacked, acked, idempotent
		KindAck:          2 * (2 + 2), // owner or not; plain, offset, code, code and detail
		KindEvents:       4 * 3,       // publisher, times; plain, offsets, skipped
		KindEventsLegacy: 4 * 3,
	}
	if fmt.Sprint(counts) != fmt.Sprint(want) {
		t.Errorf("frames by kind: %v, want %v", counts, want)
	}
}

func TestDecodersRefuseOtherKinds(t *testing.T) {
	owner := map[Kind]string{KindPublish: "DecodePublish", KindAck: "DecodeAck", KindEvents: "DecodeEvents", KindEventsLegacy: "DecodeEvents"}
	for name, f := range frameKinds {
		kind, err := f.Kind()
		if err != nil {
			t.Fatal(err)
		}
		for where, err := range decodeAll(f) {
			_, isFlags := errors.AsType[*FlagsError](err)
			isDecoder := where != "ParseHeader" && where != "Kind"
			if want := isDecoder && owner[kind] != where; isFlags != want {
				t.Errorf("%s: %s: error %v", name, where, err)
			}
		}
	}
}

// The numbers of section 5.5 of the protocol.
func TestAdvertised(t *testing.T) {
	if StandaloneFlags != 0x1E7F || ClusterFlags != 0x1EFF || ClusterFlags|IdempotentFlags != 0x1FFF {
		t.Errorf("flags %#x %#x", uint16(StandaloneFlags), uint16(ClusterFlags))
	}
	if StandaloneFeatures != 0x0020_3820 || ClusterFeatures != 0x0024_3823 || IdempotentFeatures != 0x0000_4200 {
		t.Errorf("features %#x %#x %#x", uint32(StandaloneFeatures), uint32(ClusterFeatures), uint32(IdempotentFeatures))
	}
	if got := ClusterFeatures | FeaturePublishPipeline | FeatureStreamPublishWindow; got != 0x0026_B823 {
		t.Errorf("with a window %#x", uint32(got))
	}
}

func TestNames(t *testing.T) {
	for k, want := range map[Kind]string{0: "no kind", KindMessage: "message", KindPublish: "publish", KindEvents: "events", KindEventsLegacy: "legacy events", KindAck: "ack"} {
		if k.String() != want {
			t.Errorf("%d is %q", k, k)
		}
	}
	for m, want := range map[AckMode]string{AckNone: "none", AckPerMessage: "per_message", AckPerBatch: "per_batch", 9: "ack_mode_9"} {
		if m.String() != want {
			t.Errorf("%d is %q", m, m)
		}
	}
}
