package wire

// Subscribe asks for the events of one shard.
type Subscribe struct {
	TenantID       string  `json:"tenant_id"`
	Namespace      string  `json:"namespace"`
	Stream         string  `json:"stream"`
	SubscriptionID *uint64 `json:"subscription_id,omitempty"`
	Start          *Start  `json:"start,omitempty"`          // nil: latest
	Shard          *uint32 `json:"shard,omitempty"`          // nil: 0
	QueueCapacity  *uint32 `json:"queue_capacity,omitempty"` // needs FeatureSubscribeQueue
}

// MessageType is "subscribe".
func (*Subscribe) MessageType() string { return "subscribe" }

// Subscribed answers a subscribe. The offsets are there when the stream has a
// log and the client offered FlagEventOffsets.
type Subscribed struct {
	SubscriptionID uint64  `json:"subscription_id"`
	StartOffset    *uint64 `json:"start_offset,omitempty"` // first offset delivered
	LiveOffset     *uint64 `json:"live_offset,omitempty"`  // readable end at registration
	QueueCapacity  *uint32 `json:"queue_capacity,omitempty"`
}

// MessageType is "subscribed".
func (*Subscribed) MessageType() string { return "subscribed" }

// Reasons of a SubscribeCursorError.
const (
	CursorTooOld   = "too_old"   // below retention; available is the oldest offset
	CursorInFuture = "in_future" // past the end; available is the end
)

// SubscribeCursorError answers a subscribe at an offset that is not there.
type SubscribeCursorError struct {
	Reason    string `json:"reason"`
	Requested uint64 `json:"requested"`
	Available uint64 `json:"available"`
}

// MessageType is "subscribe_cursor_error".
func (*SubscribeCursorError) MessageType() string { return "subscribe_cursor_error" }

// EventStreamHello is the first frame of every event stream.
type EventStreamHello struct {
	SubscriptionID uint64 `json:"subscription_id"`
}

// MessageType is "event_stream_hello".
func (*EventStreamHello) MessageType() string { return "event_stream_hello" }

// EventJSON is one event as JSON.
type EventJSON struct {
	TenantID  string  `json:"tenant_id"`
	Namespace string  `json:"namespace"`
	Stream    string  `json:"stream"`
	Payload   []byte  `json:"payload"`
	Offset    *uint64 `json:"offset,omitempty"`
}

// MessageType is "event".
func (*EventJSON) MessageType() string { return "event" }

func (m *EventJSON) withDefaults() Message {
	c := *m
	c.Payload = orEmpty(c.Payload)
	return &c
}

// EventBatchJSON is an event batch as JSON.
type EventBatchJSON struct {
	TenantID   string  `json:"tenant_id"`
	Namespace  string  `json:"namespace"`
	Stream     string  `json:"stream"`
	Records    Records `json:"payloads"`
	BaseOffset *uint64 `json:"base_offset,omitempty"`
}

// MessageType is "event_batch".
func (*EventBatchJSON) MessageType() string { return "event_batch" }

// SubscriptionLagged is the last frame of an event stream whose records were
// dropped; the client resumes at ResumeFrom. Only if offered.
type SubscriptionLagged struct {
	SubscriptionID uint64 `json:"subscription_id"`
	ResumeFrom     uint64 `json:"resume_from"`
}

// MessageType is "subscription_lagged".
func (*SubscriptionLagged) MessageType() string { return "subscription_lagged" }

// ShardMoved is the last frame of an event stream whose shard is served by
// another broker from now on. Only if offered.
type ShardMoved struct {
	SubscriptionID uint64  `json:"subscription_id"`
	ResumeFrom     *uint64 `json:"resume_from,omitempty"`
	NodeID         string  `json:"node_id,omitempty"`
	Addr           string  `json:"addr,omitempty"`
	Generation     uint64  `json:"generation"`
}

// MessageType is "shard_moved".
func (*ShardMoved) MessageType() string { return "shard_moved" }

// NotLeader sends the client of a request to the broker that leads the shard.
// Only if the client offered FeatureRedirect.
type NotLeader struct {
	NodeID     string `json:"node_id"`
	Addr       string `json:"addr,omitempty"`
	Generation uint64 `json:"generation"`
}

// MessageType is "not_leader".
func (*NotLeader) MessageType() string { return "not_leader" }
