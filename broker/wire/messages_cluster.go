package wire

// Topology asks for the brokers of the cluster.
type Topology struct{}

// MessageType is "topology".
func (*Topology) MessageType() string { return "topology" }

// Broker is one broker of a cluster. Addr is host:port of its client listener.
type Broker struct {
	NodeID string `json:"node_id"`
	Addr   string `json:"addr"`
}

// TopologyView lists the brokers that can serve. An empty list is valid.
type TopologyView struct {
	Brokers []Broker `json:"brokers"`
}

// MessageType is "topology_view".
func (*TopologyView) MessageType() string { return "topology_view" }

func (m *TopologyView) withDefaults() Message {
	c := *m
	if c.Brokers == nil {
		c.Brokers = []Broker{}
	}
	return &c
}

// StreamShards asks how many shards a stream has.
type StreamShards struct {
	TenantID  string `json:"tenant_id"`
	Namespace string `json:"namespace"`
	Stream    string `json:"stream"`
	RequestID uint64 `json:"request_id"`
}

// MessageType is "stream_shards".
func (*StreamShards) MessageType() string { return "stream_shards" }

// StreamShardsView answers StreamShards. 0 shards: unknown here.
type StreamShardsView struct {
	Shards    uint32  `json:"shards"`
	RequestID uint64  `json:"request_id"`
	Routing   Routing `json:"routing,omitempty"`
}

// MessageType is "stream_shards_view".
func (*StreamShardsView) MessageType() string { return "stream_shards_view" }

// Kinds of a ShardOwners request.
const (
	OwnersOfStream = "stream"
	OwnersOfCache  = "cache"
)

// ShardOwners asks which broker leads each shard.
type ShardOwners struct {
	TenantID  string `json:"tenant_id"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Kind      string `json:"kind"` // OwnersOfStream or OwnersOfCache
	RequestID uint64 `json:"request_id"`
}

// MessageType is "shard_owners".
func (*ShardOwners) MessageType() string { return "shard_owners" }

// ShardOwner is the leader of one shard. Without a cluster NodeID is empty;
// without a leader Unavailable says why.
type ShardOwner struct {
	Shard       uint32 `json:"shard"`
	NodeID      string `json:"node_id,omitempty"`
	Addr        string `json:"addr,omitempty"`
	Generation  uint64 `json:"generation"`
	Unavailable string `json:"unavailable,omitempty"`
}

// ShardOwnersView answers ShardOwners, one entry for each shard in order. An
// unknown name has an empty list.
type ShardOwnersView struct {
	Owners    []ShardOwner `json:"owners"`
	RequestID uint64       `json:"request_id"`
}

// MessageType is "shard_owners_view".
func (*ShardOwnersView) MessageType() string { return "shard_owners_view" }

func (m *ShardOwnersView) withDefaults() Message {
	c := *m
	if c.Owners == nil {
		c.Owners = []ShardOwner{}
	}
	return &c
}
