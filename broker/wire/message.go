package wire

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// Message is a JSON message; the implementations are pointers to the structs
// of this package.
//
// In the structs, a field without omitempty or omitzero must be there when the
// message is decoded (absent and null are the same); a pointer, or a slice
// marked omitzero, tells "absent" from "zero"; the other optional fields mean
// the same absent and zero.
type Message interface {
	// MessageType is the value of the "type" field.
	MessageType() string
}

// Unknown is a message of a type that is not implemented here, the cache and
// consumer group ones among them. The stream can go on: answer UnsupportedFor.
type Unknown struct {
	Type      string  `json:"-"`
	RequestID *uint64 `json:"request_id,omitempty"` // if it had a numeric one
}

// MessageType is the type as received.
func (m *Unknown) MessageType() string { return m.Type }

// messageKind is what DecodeMessage needs to know of a type.
type messageKind struct {
	new      func() Message
	required []string // JSON names
}

var messageKinds = kindsOf(
	func() Message { return new(Auth) },
	func() Message { return new(OK) },
	func() Message { return new(AuthOK) },
	func() Message { return new(ErrorMsg) },
	func() Message { return new(Unsupported) },
	func() Message { return new(Extension) },
	func() Message { return new(PublishJSON) },
	func() Message { return new(PublishBatchJSON) },
	func() Message { return new(PublishOK) },
	func() Message { return new(PublishError) },
	func() Message { return new(ProducerInit) },
	func() Message { return new(ProducerInitOK) },
	func() Message { return new(PublishIdempotent) },
	func() Message { return new(PublishRefused) },
	func() Message { return new(Subscribe) },
	func() Message { return new(Subscribed) },
	func() Message { return new(SubscribeCursorError) },
	func() Message { return new(EventStreamHello) },
	func() Message { return new(EventJSON) },
	func() Message { return new(EventBatchJSON) },
	func() Message { return new(SubscriptionLagged) },
	func() Message { return new(ShardMoved) },
	func() Message { return new(NotLeader) },
	func() Message { return new(Topology) },
	func() Message { return new(TopologyView) },
	func() Message { return new(StreamShards) },
	func() Message { return new(StreamShardsView) },
	func() Message { return new(ShardOwners) },
	func() Message { return new(ShardOwnersView) },
)

// kindsOf indexes the messages by type and takes the required fields from
// their tags.
func kindsOf(news ...func() Message) map[string]messageKind {
	kinds := make(map[string]messageKind, len(news))
	for _, n := range news {
		k := messageKind{new: n}
		t := reflect.TypeOf(n()).Elem()
		for i := range t.NumField() {
			name, opts, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			if opts == "" {
				k.required = append(k.required, name)
			}
		}
		kinds[n().MessageType()] = k
	}
	return kinds
}

// DecodeMessage reads the payload of a frame without flags. A type that is not
// implemented here gives an *Unknown and no error; anything that is not one
// UTF-8 JSON object with its required fields gives a *DecodeError. The result
// does not refer to payload.
func DecodeMessage(payload []byte) (Message, error) {
	if !utf8.Valid(payload) {
		return nil, malformed("message", "not UTF-8")
	}
	if !json.Valid(payload) {
		return nil, malformed("message", "not one JSON value")
	}
	var typ string
	var hasType bool
	var requestID []byte
	isObject := scanObject(payload, func(key, value []byte) {
		switch {
		case string(key) == `"type"`:
			typ, hasType = unquote(value)
		case string(key) == `"request_id"`:
			requestID = value
		}
	})
	if !isObject || !hasType {
		return nil, malformed("message", "not an object with a type")
	}
	kind, ok := messageKinds[typ]
	if !ok {
		m := &Unknown{Type: typ}
		if id := new(uint64); json.Unmarshal(requestID, id) == nil && string(requestID) != "null" {
			m.RequestID = id
		}
		return m, nil
	}
	if missing := missingField(payload, kind.required); missing != "" {
		return nil, malformed("message "+typ, "no "+missing)
	}
	m := kind.new()
	if err := json.Unmarshal(payload, m); err != nil {
		return nil, decodeErr("message "+typ, fmt.Errorf("%w: %w", ErrMalformed, err))
	}
	return m, nil
}

// missingField names the first required field that is absent or null.
func missingField(payload []byte, required []string) string {
	found := make([]bool, len(required))
	scanObject(payload, func(key, value []byte) {
		name, ok := unquote(key)
		if i := slices.Index(required, name); ok && i >= 0 {
			found[i] = string(value) != "null"
		}
	})
	if i := slices.Index(found, false); i >= 0 {
		return required[i]
	}
	return ""
}

// defaulter is a message with byte strings or lists in which nil means empty
// and must not be written as null.
type defaulter interface{ withDefaults() Message }

// AppendMessage appends the whole frame, the type first and then the fields in
// the order of the struct.
func AppendMessage(dst []byte, m Message) []byte {
	var v any = m
	if d, ok := m.(defaulter); ok {
		v = d.withDefaults()
	}
	fields, err := json.Marshal(v)
	if err != nil || len(fields) < 2 || fields[0] != '{' {
		// Only a foreign implementation of Message comes here.
		panic("wire: invariant: a message encodes as an object: " + m.MessageType())
	}
	typ, err := json.Marshal(m.MessageType())
	if err != nil {
		panic("wire: invariant: a string encodes: " + m.MessageType())
	}
	n := len(`{"type":`) + len(typ) + len(fields) - 1
	if len(fields) > 2 {
		n++ // the comma
	}
	dst = AppendHeader(dst, 0, n)
	dst = append(dst, `{"type":`...)
	dst = append(dst, typ...)
	if len(fields) > 2 {
		dst = append(dst, ',')
	}
	return append(dst, fields[1:]...)
}
