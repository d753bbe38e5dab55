package wire

import "encoding/json"

// Auth is the first frame of every stream that a client opens.
type Auth struct {
	TenantID         string     `json:"tenant_id"`
	Token            string     `json:"token"`
	ClientFlags      *Flags     `json:"client_flags,omitempty"`
	ClientFeatures   Features   `json:"client_features,omitempty"`
	ClientFeaturesHi FeaturesHi `json:"client_features_hi,omitempty"`
}

// MessageType is "auth".
func (*Auth) MessageType() string { return "auth" }

// Offer is what the client said it understands. Features count without flags
// only for the decision whether an error may carry a code.
func (m *Auth) Offer() Offer {
	if m.ClientFlags == nil {
		return Offer{Flags: BaseFlags}
	}
	o := Offer{Negotiated: true, Flags: *m.ClientFlags, Features: m.ClientFeatures}
	if o.Features.Has(FeatureExtended) {
		o.FeaturesHi = m.ClientFeaturesHi
	}
	return o
}

// OK answers an auth without an offer.
type OK struct{}

// MessageType is "ok".
func (*OK) MessageType() string { return "ok" }

// AuthOK answers an auth with an offer.
type AuthOK struct {
	ServerFlags      Flags      `json:"server_flags"`
	ServerFeatures   Features   `json:"server_features,omitempty"`
	ServerFeaturesHi FeaturesHi `json:"server_features_hi,omitempty"` // needs FeatureExtended on both sides
	ListenerPorts    []uint16   `json:"listener_ports,omitempty"`
	PublishWindow    *uint32    `json:"publish_window,omitempty"`
}

// MessageType is "auth_ok".
func (*AuthOK) MessageType() string { return "auth_ok" }

// ErrorDetail is what more is known of an error.
type ErrorDetail struct {
	Reason       string `json:"reason,omitempty"`
	RetryAfterMS uint64 `json:"retry_after_ms,omitempty"`
}

// ErrorMsg is a failure. Code, Retry and Detail only go to a client that
// offered FeatureErrorCodes.
type ErrorMsg struct {
	Message string       `json:"message"`
	Code    string       `json:"code,omitempty"`
	Retry   string       `json:"retry,omitempty"`
	Detail  *ErrorDetail `json:"detail,omitempty"`
}

// MessageType is "error".
func (*ErrorMsg) MessageType() string { return "error" }

// Unsupported answers a request that is not served; the stream goes on.
type Unsupported struct {
	RequestType string  `json:"request_type"`
	Extension   string  `json:"extension,omitempty"`
	RequestID   *uint64 `json:"request_id,omitempty"`
}

// MessageType is "unsupported".
func (*Unsupported) MessageType() string { return "unsupported" }

// UnsupportedFor is the answer to an *Unknown, an *Extension or any other
// request that is not served. Names are cut to a length that fits every frame.
func UnsupportedFor(m Message) *Unsupported {
	const maxName = 1024
	u := &Unsupported{RequestType: clip(m.MessageType(), maxName)}
	switch m := m.(type) {
	case *Unknown:
		u.RequestID = m.RequestID
	case *Extension:
		u.Extension, u.RequestID = clip(m.Name, maxName), m.RequestID
	}
	return u
}

// Extension is a request outside of the protocol.
type Extension struct {
	Name      string          `json:"name"`
	RequestID *uint64         `json:"request_id,omitempty"`
	Body      json.RawMessage `json:"body,omitempty"`
}

// MessageType is "extension".
func (*Extension) MessageType() string { return "extension" }

func (m *Extension) withDefaults() Message {
	c := *m
	if !json.Valid(c.Body) {
		c.Body = json.RawMessage("null")
	}
	return &c
}
