package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
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
	new    func() Message
	fields objectShape
}

// objectShape is what an object must have before it is decoded.
type objectShape struct {
	required []string // JSON names
	lists    []listShape
}

// listShape is a list of objects in an object.
type listShape struct {
	name    []byte
	element objectShape
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

func kindsOf(news ...func() Message) map[string]messageKind {
	kinds := make(map[string]messageKind, len(news))
	for _, n := range news {
		kinds[n().MessageType()] = messageKind{new: n, fields: shapeOf(reflect.TypeOf(n()).Elem())}
	}
	return kinds
}

// shapeOf takes the required fields of a struct from its tags.
func shapeOf(t reflect.Type) objectShape {
	var s objectShape
	for f := range t.Fields() {
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		if opts == "" {
			s.required = append(s.required, name)
		}
		if f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Struct {
			s.lists = append(s.lists, listShape{name: []byte(name), element: shapeOf(f.Type.Elem())})
		}
	}
	return s
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
		switch name, _ := text(key); string(name) {
		case "type":
			typ, hasType = unquote(value)
		case "request_id":
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
	if err := kind.fields.check(payload); err != nil {
		return nil, decodeErr("message "+typ, err)
	}
	m := kind.new()
	if err := json.Unmarshal(payload, m); err != nil {
		// Errors quote what they do not like, which may be the whole frame.
		return nil, malformed("message "+typ, clip(err.Error(), 200))
	}
	return m, nil
}

// check reports a required field that is absent or null. It also is what keeps
// a list of thousands of empty objects from being decoded into as many structs.
func (s objectShape) check(object []byte) error {
	var found uint64 // bit i: required[i]
	var bad error
	isObject := scanObject(object, func(key, value []byte) {
		if bad != nil || string(value) == "null" {
			return
		}
		name, _ := text(key)
		for i, r := range s.required {
			if string(name) == r {
				found |= 1 << i
			}
		}
		for _, l := range s.lists {
			// encoding/json does not look at case either.
			if bad == nil && bytes.EqualFold(name, l.name) {
				bad = scanArray(value, l.element.check)
			}
		}
	})
	if !isObject {
		return fmt.Errorf("%w: not an object", ErrMalformed)
	}
	for i, r := range s.required {
		if found&(1<<i) == 0 {
			return fmt.Errorf("%w: no %s", ErrMalformed, r)
		}
	}
	return bad
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
