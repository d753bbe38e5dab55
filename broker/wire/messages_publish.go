package wire

import (
	"encoding/json"
	"fmt"
)

// PublishJSON is a publish of one record as JSON. Ack AckNone: no answer.
type PublishJSON struct {
	TenantID  string  `json:"tenant_id"`
	Namespace string  `json:"namespace"`
	Stream    string  `json:"stream"`
	Payload   []byte  `json:"payload"`
	Key       []byte  `json:"key,omitzero"` // nil: no key
	RequestID *uint64 `json:"request_id,omitempty"`
	Ack       AckMode `json:"ack,omitempty"`
}

// MessageType is "publish".
func (*PublishJSON) MessageType() string { return "publish" }

func (m *PublishJSON) withDefaults() Message {
	c := *m
	c.Payload = orEmpty(c.Payload)
	return &c
}

// PublishBatchJSON is a publish of several records as JSON.
type PublishBatchJSON struct {
	TenantID  string  `json:"tenant_id"`
	Namespace string  `json:"namespace"`
	Stream    string  `json:"stream"`
	Records   Records `json:"payloads"`
	Key       []byte  `json:"key,omitzero"` // nil: no key
	RequestID *uint64 `json:"request_id,omitempty"`
	Ack       AckMode `json:"ack,omitempty"`
}

// MessageType is "publish_batch".
func (*PublishBatchJSON) MessageType() string { return "publish_batch" }

// PublishOK answers a JSON or idempotent publish.
type PublishOK struct {
	RequestID uint64  `json:"request_id"`
	Offset    *uint64 `json:"offset,omitempty"` // only to a client that offered FlagAckOffset
}

// MessageType is "publish_ok".
func (*PublishOK) MessageType() string { return "publish_ok" }

// PublishError answers a JSON or idempotent publish that failed.
type PublishError struct {
	RequestID uint64       `json:"request_id"`
	Message   string       `json:"message"`
	Code      string       `json:"code,omitempty"`
	Retry     string       `json:"retry,omitempty"`
	Detail    *ErrorDetail `json:"detail,omitempty"`
}

// MessageType is "publish_error".
func (*PublishError) MessageType() string { return "publish_error" }

// ProducerInit asks for a producer id.
type ProducerInit struct {
	RequestID uint64 `json:"request_id"`
}

// MessageType is "producer_init".
func (*ProducerInit) MessageType() string { return "producer_init" }

// ProducerInitOK gives a producer id: 64 random bits.
type ProducerInitOK struct {
	RequestID  uint64 `json:"request_id"`
	ProducerID uint64 `json:"producer_id"`
}

// MessageType is "producer_init_ok".
func (*ProducerInitOK) MessageType() string { return "producer_init_ok" }

// PublishIdempotent is an idempotent publish as JSON.
type PublishIdempotent struct {
	TenantID   string  `json:"tenant_id"`
	Namespace  string  `json:"namespace"`
	Stream     string  `json:"stream"`
	Records    Records `json:"payloads"`
	Key        []byte  `json:"key,omitzero"` // nil: no key
	RequestID  uint64  `json:"request_id"`
	ProducerID uint64  `json:"producer_id"`
	Sequence   uint64  `json:"sequence"`
}

// MessageType is "publish_idempotent".
func (*PublishIdempotent) MessageType() string { return "publish_idempotent" }

// PublishRefused answers an idempotent publish that the producer state, or the
// lack of leadership, does not allow.
type PublishRefused struct {
	RequestID uint64        `json:"request_id"`
	Reason    RefusedReason `json:"reason"`
	Message   string        `json:"message"`
}

// MessageType is "publish_refused".
func (*PublishRefused) MessageType() string { return "publish_refused" }

// RefusedKind is why an idempotent publish was refused.
type RefusedKind string

// Kinds of refusal. A peer may send others.
const (
	RefusedGap       RefusedKind = "sequence_gap"     // Expected is set
	RefusedExpired   RefusedKind = "sequence_expired" // below the remembered window
	RefusedReused    RefusedKind = "sequence_reused"  // only to a client that offered FeatureSequenceReused
	RefusedUnknown   RefusedKind = "unknown_producer"
	RefusedNotLeader RefusedKind = "not_leader" // NodeID and perhaps Addr are set
)

// RefusedReason is a refusal with its data.
type RefusedReason struct {
	Kind     RefusedKind
	Expected uint64 // next sequence, for RefusedGap
	NodeID   string // leader, for RefusedNotLeader
	Addr     string // its client address, empty if not known
}

type refusedGap struct {
	Expected uint64 `json:"expected"`
}

type refusedNotLeader struct {
	NodeID string `json:"node_id"`
	Addr   string `json:"addr,omitempty"`
}

// MarshalJSON is a string, or an object with one key for a kind with data.
func (r RefusedReason) MarshalJSON() ([]byte, error) {
	switch r.Kind {
	case RefusedGap:
		return json.Marshal(map[RefusedKind]refusedGap{r.Kind: {Expected: r.Expected}})
	case RefusedNotLeader:
		return json.Marshal(map[RefusedKind]refusedNotLeader{r.Kind: {NodeID: r.NodeID, Addr: r.Addr}})
	case RefusedExpired, RefusedReused, RefusedUnknown:
	}
	return json.Marshal(string(r.Kind))
}

// UnmarshalJSON reads both forms. The data of an unknown kind is dropped.
func (r *RefusedReason) UnmarshalJSON(b []byte) error {
	kind, data, err := enumCase(b)
	if err != nil {
		return err
	}
	*r = RefusedReason{Kind: RefusedKind(kind)}
	switch r.Kind {
	case RefusedGap:
		var gap refusedGap
		err = json.Unmarshal(data, &gap)
		r.Expected = gap.Expected
	case RefusedNotLeader:
		var nl refusedNotLeader
		err = json.Unmarshal(data, &nl)
		r.NodeID, r.Addr = nl.NodeID, nl.Addr
	case RefusedExpired, RefusedReused, RefusedUnknown:
	}
	return err
}

// enumCase reads an enumeration: a string, or an object with one key, whose
// value is the data. Without data it is null.
func enumCase(b []byte) (name string, data []byte, err error) {
	if s, ok := unquote(b); ok {
		return s, []byte("null"), nil
	}
	fields, named := 0, true
	isObject := scanObject(b, func(key, value []byte) {
		fields++
		name, named = unquote(key)
		data = value
	})
	if !isObject || fields != 1 || !named {
		return "", nil, fmt.Errorf("%w: neither a string nor an object with one key", ErrMalformed)
	}
	return name, data, nil
}
