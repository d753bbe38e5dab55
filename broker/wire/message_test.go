package wire

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	bigID   = uint64(math.MaxUint64)
	bigHalf = uint64(1)<<53 + 1 // the first integer that a float64 cannot hold
)

// messages has every message at its fullest; TestEveryMessage fails for a type
// without one.
var messages = map[string]Message{
	"auth": &Auth{
		TenantID: "t1", Token: "x.y.z", ClientFlags: new(Flags(0x1FFF)), ClientFeatures: 0xFB77FFFF, ClientFeaturesHi: 1,
	},
	"ok": &OK{},
	"auth_ok": &AuthOK{
		ServerFlags: StandaloneFlags, ServerFeatures: 0x8000_0001, ServerFeaturesHi: 8, ListenerPorts: []uint16{1, 65535}, PublishWindow: new(uint32(0)),
	},
	"error":         &ErrorMsg{Message: "<no> & \"é\"\n", Code: "not_found", Retry: "retry_after", Detail: &ErrorDetail{Reason: "r", RetryAfterMS: bigID}},
	"unsupported":   &Unsupported{RequestType: "extension", Extension: "x", RequestID: new(bigID)},
	"extension":     &Extension{Name: "x", RequestID: new(uint64(0)), Body: json.RawMessage(`[1]`)},
	"publish":       &PublishJSON{TenantID: "t", Namespace: "n", Stream: "s", Payload: []byte{0xfb, 0xff}, Key: []byte{}, RequestID: new(bigHalf), Ack: AckPerMessage},
	"publish_batch": &PublishBatchJSON{TenantID: "t", Namespace: "n", Stream: "s", Records: RecordsOf([]byte("a"), nil), Key: []byte("k"), RequestID: new(uint64(1)), Ack: AckPerBatch},
	"publish_ok":    &PublishOK{RequestID: bigID, Offset: new(bigHalf)},
	"publish_error": &PublishError{RequestID: 1, Message: "m", Code: "internal", Retry: "retry", Detail: &ErrorDetail{}},
	"producer_init": &ProducerInit{RequestID: 1}, "producer_init_ok": &ProducerInitOK{RequestID: 1, ProducerID: bigID},
	"publish_idempotent": &PublishIdempotent{
		TenantID: "t", Namespace: "n", Stream: "s", Records: RecordsOf([]byte("a")), Key: []byte("k"), RequestID: 1, ProducerID: bigID, Sequence: bigHalf,
	},
	"publish_refused":        &PublishRefused{RequestID: 1, Reason: RefusedReason{Kind: RefusedGap, Expected: bigID}, Message: "m"},
	"subscribe":              &Subscribe{TenantID: "t", Namespace: "n", Stream: "s", SubscriptionID: new(bigID), Start: new(StartAt(bigID)), Shard: new(uint32(0)), QueueCapacity: new(uint32(math.MaxUint32))},
	"subscribed":             &Subscribed{SubscriptionID: bigID, StartOffset: new(uint64(0)), LiveOffset: new(bigID), QueueCapacity: new(uint32(1))},
	"subscribe_cursor_error": &SubscribeCursorError{Reason: CursorTooOld, Requested: 0, Available: bigID},
	"event_stream_hello":     &EventStreamHello{SubscriptionID: bigID},
	"event":                  &EventJSON{TenantID: "t", Namespace: "n", Stream: "s", Payload: []byte("p"), Offset: new(bigID)},
	"event_batch":            &EventBatchJSON{TenantID: "t", Namespace: "n", Stream: "s", Records: RecordsOf([]byte("a"), []byte("b")), BaseOffset: new(uint64(0))},
	"subscription_lagged":    &SubscriptionLagged{SubscriptionID: 1, ResumeFrom: bigID},
	"shard_moved":            &ShardMoved{SubscriptionID: 1, ResumeFrom: new(uint64(0)), NodeID: "b2", Addr: "a:1", Generation: bigID},
	"not_leader":             &NotLeader{NodeID: "b2", Addr: "a:1", Generation: bigID},
	"topology":               &Topology{},
	"topology_view":          &TopologyView{Brokers: []Broker{{NodeID: "b1", Addr: "a:1"}, {NodeID: "b2", Addr: "a:2"}}},
	"stream_shards":          &StreamShards{TenantID: "t", Namespace: "n", Stream: "s", RequestID: bigID},
	"stream_shards_view":     &StreamShardsView{Shards: math.MaxUint32, RequestID: 1, Routing: RoutingJump},
	"shard_owners":           &ShardOwners{TenantID: "t", Namespace: "n", Name: "s", Kind: OwnersOfStream, RequestID: 1},
	"shard_owners_view":      &ShardOwnersView{Owners: []ShardOwner{{Shard: 1, NodeID: "b", Addr: "a:1", Generation: 2, Unavailable: "u"}}, RequestID: 1},
}

func roundTrip(t *testing.T, m Message) Message {
	t.Helper()
	h, payload := splitFrame(t, AppendMessage(nil, m))
	if h.Flags != 0 {
		t.Errorf("flags %#x", h.Flags)
	}
	if want := `{"type":"` + m.MessageType() + `"`; !strings.HasPrefix(string(payload), want) {
		t.Errorf("%s does not begin with its type", payload)
	}
	got, err := DecodeMessage(payload)
	if err != nil {
		t.Fatalf("%s: %v", payload, err)
	}
	return got
}

func TestEveryMessage(t *testing.T) {
	for typ := range messageKinds {
		m, ok := messages[typ]
		if !ok {
			t.Errorf("no example of %s", typ)
			continue
		}
		if diff := cmp.Diff(m, roundTrip(t, m)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", typ, diff)
		}
		// At its emptiest: what is nil is empty on the wire, never null.
		empty := messageKinds[typ].new()
		frame := AppendMessage(nil, empty)
		if typ != "extension" && strings.Contains(string(frame), "null") {
			t.Errorf("%s: %s", typ, frame[HeaderLen:])
		}
		roundTrip(t, empty)
	}
	if len(messages) != len(messageKinds) {
		t.Errorf("%d examples of %d messages", len(messages), len(messageKinds))
	}
}

// Every required field, left out and null.
func TestRequiredFields(t *testing.T) {
	for typ, kind := range messageKinds {
		_, payload := splitFrame(t, AppendMessage(nil, messages[typ]))
		for _, name := range kind.fields.required {
			var fields map[string]json.RawMessage
			if err := json.Unmarshal(payload, &fields); err != nil {
				t.Fatal(err)
			}
			if _, ok := fields[name]; !ok {
				t.Fatalf("%s has no field %s", typ, name)
			}
			for _, v := range []json.RawMessage{nil, json.RawMessage("null")} {
				delete(fields, name)
				if v != nil {
					fields[name] = v
				}
				b, err := json.Marshal(fields)
				if err != nil {
					t.Fatal(err)
				}
				if m, err := DecodeMessage(b); !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), name) {
					t.Errorf("%s: %v, error %v", b, m, err)
				}
			}
		}
	}
}

func TestDecodeMessageForms(t *testing.T) {
	for name, tt := range map[string]struct {
		in   string
		want Message
	}{
		"any order, spaces":      {" { \"request_id\" : 7 ,\n\t\"type\" : \"producer_init\" } ", &ProducerInit{RequestID: 7}},
		"unknown fields":         {`{"type":"topology","x":{"type":"y","z":[1,{"a":"]}"}]},"q":"\""}`, &Topology{}},
		"null is absent":         {`{"type":"subscribe","tenant_id":"t","namespace":"n","stream":"s","start":null,"shard":null}`, &Subscribe{TenantID: "t", Namespace: "n", Stream: "s"}},
		"null key":               {`{"type":"publish","tenant_id":"t","namespace":"n","stream":"s","payload":"","key":null,"ack":null}`, &PublishJSON{TenantID: "t", Namespace: "n", Stream: "s", Payload: []byte{}}},
		"ack none":               {`{"type":"publish","tenant_id":"t","namespace":"n","stream":"s","payload":"","ack":"none"}`, &PublishJSON{TenantID: "t", Namespace: "n", Stream: "s", Payload: []byte{}}},
		"a key twice":            {`{"type":"producer_init","request_id":1,"request_id":2}`, &ProducerInit{RequestID: 2}},
		"escaped key":            {`{"t\u0079pe":"producer_init","request\u005fid":2}`, &ProducerInit{RequestID: 2}},
		"modulo by name":         {`{"type":"stream_shards_view","shards":2,"request_id":1,"routing":"modulo"}`, &StreamShardsView{Shards: 2, RequestID: 1}},
		"unknown":                {`{"type":"cache_watch","request_id":18446744073709551615}`, &Unknown{Type: "cache_watch", RequestID: new(bigID)}},
		"unknown, no id":         {`{"type":"x"}`, &Unknown{Type: "x"}},
		"unknown, null id":       {`{"type":"x","request_id":null}`, &Unknown{Type: "x"}},
		"unknown, text id":       {`{"type":"x","request_id":"1"}`, &Unknown{Type: "x"}},
		"unknown, negative id":   {`{"type":"x","request_id":-1}`, &Unknown{Type: "x"}},
		"type of no name":        {`{"type":""}`, &Unknown{}},
		"unknown reason":         {`{"type":"publish_refused","request_id":1,"reason":{"offset_mismatch":{"tail":3}},"message":""}`, &PublishRefused{RequestID: 1, Reason: RefusedReason{Kind: "offset_mismatch"}}},
		"reused":                 {`{"type":"publish_refused","request_id":1,"reason":"sequence_reused","message":""}`, &PublishRefused{RequestID: 1, Reason: RefusedReason{Kind: RefusedReused}}},
		"not leader, no address": {`{"type":"publish_refused","request_id":1,"reason":{"not_leader":{"node_id":"b"}},"message":""}`, &PublishRefused{RequestID: 1, Reason: RefusedReason{Kind: RefusedNotLeader, NodeID: "b"}}},
		"extension, no body":     {`{"type":"extension","name":"x"}`, &Extension{Name: "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := DecodeMessage([]byte(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestDecodeMessageRefuses(t *testing.T) {
	const sub = `{"type":"subscribe","tenant_id":"t","namespace":"n","stream":"s",`
	for name, in := range map[string]string{
		"nothing": ``, "space": ` `, "no object": `"ok"`, "array": `[{"type":"ok"}]`, "null": `null`,
		"no type": `{}`, "type null": `{"type":null}`, "type number": `{"type":1}`, "type in other case": `{"Type":"ok"}`,
		"two values": `{"type":"ok"}{"type":"ok"}`, "cut": `{"type":"ok"`, "comma": `{"type":"ok",}`,
		"float id":        `{"type":"producer_init","request_id":1.5}`,
		"exponent id":     `{"type":"producer_init","request_id":1e3}`,
		"id above 64 bit": `{"type":"producer_init","request_id":18446744073709551616}`,
		"negative id":     `{"type":"producer_init","request_id":-1}`,
		"text id":         `{"type":"producer_init","request_id":"1"}`,
		"flags of 17 bit": `{"type":"auth","tenant_id":"t","token":"x","client_flags":65536}`,
		"features of 33":  `{"type":"auth","tenant_id":"t","token":"x","client_flags":1,"client_features":4294967296}`,
		"start name":      sub + `"start":"now"}`, "start number": sub + `"start":5}`, "start offset alone": sub + `"start":"offset"}`,
		"start two keys": sub + `"start":{"offset":1,"x":2}}`, "start no key": sub + `"start":{}}`, "start text": sub + `"start":{"offset":"1"}}`,
		"start null": sub + `"start":{"offset":null}}`, "start data": sub + `"start":{"latest":1}}`, "start negative": sub + `"start":{"offset":-1}}`,
		"shard":      sub + `"shard":-1}`,
		"ack":        `{"type":"publish","tenant_id":"t","namespace":"n","stream":"s","payload":"","ack":"always"}`,
		"key":        `{"type":"publish","tenant_id":"t","namespace":"n","stream":"s","payload":"","key":"-_"}`,
		"url base64": `{"type":"publish_batch","tenant_id":"t","namespace":"n","stream":"s","payloads":["-_-_"]}`,
		"routing":    `{"type":"stream_shards_view","shards":2,"request_id":1,"routing":"other"}`,
		"broker":     `{"type":"topology_view","brokers":[{"node_id":"b1"}]}`,
		"reason":     `{"type":"publish_refused","request_id":1,"reason":{"sequence_gap":{"expected":-1}},"message":""}`,
	} {
		t.Run(name, func(t *testing.T) {
			m, err := DecodeMessage([]byte(in))
			if _, ok := errors.AsType[*DecodeError](err); !ok || !errors.Is(err, ErrMalformed) || m != nil {
				t.Errorf("%v, error %v", m, err)
			}
		})
	}
}

func TestOffer(t *testing.T) {
	for name, tt := range map[string]struct {
		in   Auth
		want Offer
	}{
		"none":         {Auth{ClientFeatures: FeatureErrorCodes}, Offer{Flags: 7}},
		"flags":        {Auth{ClientFlags: new(Flags(0))}, Offer{Negotiated: true}},
		"two words":    {Auth{ClientFlags: new(Flags(1)), ClientFeatures: FeatureExtended, ClientFeaturesHi: 9}, Offer{true, 1, FeatureExtended, 9}},
		"no marker":    {Auth{ClientFlags: new(Flags(1)), ClientFeatures: 1, ClientFeaturesHi: 9}, Offer{true, 1, 1, 0}},
		"unknown bits": {Auth{ClientFlags: new(Flags(0xFFFF)), ClientFeatures: 0xFFFF_FFFF, ClientFeaturesHi: 0xF}, Offer{true, 0xFFFF, 0xFFFF_FFFF, 0xF}},
	} {
		if diff := cmp.Diff(tt.want, tt.in.Offer()); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
	if !FeaturesHi(9).Has(FeatureHiExplicitShard|FeatureHiInspect) || Features(1).Has(FeatureRedirect) {
		t.Error("Has")
	}
}

func TestUnsupportedFor(t *testing.T) {
	for _, tt := range []struct {
		in   Message
		want *Unsupported
	}{
		{&Unknown{Type: "commit", RequestID: new(uint64(12))}, &Unsupported{RequestType: "commit", RequestID: new(uint64(12))}},
		{&Extension{Name: "x.demo", RequestID: new(uint64(3))}, &Unsupported{RequestType: "extension", Extension: "x.demo", RequestID: new(uint64(3))}},
		{&Topology{}, &Unsupported{RequestType: "topology"}},
	} {
		if diff := cmp.Diff(tt.want, UnsupportedFor(tt.in)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}

func TestStartString(t *testing.T) {
	for s, want := range map[Start]string{{}: "latest", {Kind: StartEarliest}: "earliest", StartAt(7): "offset 7"} {
		if s.String() != want {
			t.Errorf("%+v is %q", s, s)
		}
	}
}

func BenchmarkDecodeAuth(b *testing.B) {
	b.ReportAllocs()
	payload := AppendMessage(nil, messages["auth"])[HeaderLen:]
	for b.Loop() {
		if _, err := DecodeMessage(payload); err != nil {
			b.Fatal(err)
		}
	}
}
