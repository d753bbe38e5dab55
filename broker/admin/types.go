package admin

import (
	"fmt"
	"time"
)

// Duration is a time.Duration that is text in JSON: "1h30m".
type Duration time.Duration

// MarshalText writes the form of time.Duration.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads the form of time.ParseDuration.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil {
		return fmt.Errorf("duration %q: want a form like 1h30m", b)
	}
	*d = Duration(v)
	return nil
}

// Name is what a stream is called.
type Name struct {
	Tenant    string `json:"tenant"`
	Namespace string `json:"namespace"`
	Stream    string `json:"stream"`
}

// String is "tenant/namespace/stream".
func (n Name) String() string { return n.Tenant + "/" + n.Namespace + "/" + n.Stream }

// Retention bounds what a stream keeps. Zero: no bound.
type Retention struct {
	MaxBytes int64    `json:"max_bytes,omitempty"`
	MaxAge   Duration `json:"max_age,omitzero"`
}

// Queue bounds how far a subscription may lag. Zero: the broker's default.
type Queue struct {
	Entries int    `json:"entries,omitempty"`
	Bytes   int64  `json:"bytes,omitempty"`
	OnFull  string `json:"on_full,omitempty"` // DropNew, Block, CatchUp
}

// Fsync says when a log is synced. Zero: the broker's default.
type Fsync struct {
	Mode  string   `json:"mode,omitempty"` // Always, Interval
	Every Duration `json:"every,omitzero"`
}

// StreamSpec is what somebody wants a stream to be.
type StreamSpec struct {
	Name

	Shards     uint32    `json:"shards,omitempty"`     // 0: 1
	Durability string    `json:"durability,omitempty"` // Memory, Durable, and in a cluster Quorum; empty: Durable
	Routing    string    `json:"routing,omitempty"`    // modulo, jump_hash; empty: modulo
	Retention  Retention `json:"retention,omitzero"`
	Queue      Queue     `json:"queue,omitzero"`
	TailBytes  int64     `json:"tail_bytes,omitempty"`
	Fsync      Fsync     `json:"fsync,omitzero"`
}

// StreamChange is what may be changed of a stream; nil leaves a setting as it is.
type StreamChange struct {
	Shards    *uint32    `json:"shards,omitempty"` // may only grow
	Retention *Retention `json:"retention,omitempty"`
	Queue     *Queue     `json:"queue,omitempty"`
	TailBytes *int64     `json:"tail_bytes,omitempty"`
	Fsync     *Fsync     `json:"fsync,omitempty"`
}

// Stream is a stream as the broker has it.
type Stream struct {
	Spec        StreamSpec `json:"spec"`
	Incarnation string     `json:"incarnation"`
	CreatedAt   time.Time  `json:"created_at"`
	Shards      []Shard    `json:"shards"`
}

// Shard is one shard of a stream.
type Shard struct {
	Shard         uint32 `json:"shard"`
	OldestOffset  uint64 `json:"oldest_offset"` // first that can be read
	NextOffset    uint64 `json:"next_offset"`   // of the next record
	LogBytes      int64  `json:"log_bytes"`
	TailBytes     int64  `json:"tail_bytes"`
	Subscriptions int    `json:"subscriptions"`
	// Who has the shard, in a cluster: a quorum group, and the broker that leads it as
	// far as that is known; or one owner, and the broker that it is being moved to.
	Group  uint32 `json:"group,omitempty"`
	Leader string `json:"leader,omitempty"`
	Owner  string `json:"owner,omitempty"`
	Moving string `json:"moving,omitempty"`
	// Error says why the shard cannot be written or read on, and what to do about it;
	// empty: it can. Detail is what the error was that the broker met.
	Error  string `json:"error,omitempty"`
	Detail string `json:"detail,omitempty"`
}

// Subscription is one reader: what somebody needs to know who asks who is slow.
type Subscription struct {
	ID uint64 `json:"id"` // the one in metrics and logs
	Name

	Shard      uint32    `json:"shard"`
	Remote     string    `json:"remote"` // address of its connection
	Principal  string    `json:"principal"`
	State      string    `json:"state"` // live, behind, waiting, blocked
	OnFull     string    `json:"on_full"`
	NextOffset uint64    `json:"next_offset"` // first that it has not been sent
	LagRecords uint64    `json:"lag_records"`
	LagEntries uint64    `json:"lag_entries"`
	LagBytes   uint64    `json:"lag_bytes"`
	Delivered  uint64    `json:"delivered"`
	Dropped    uint64    `json:"dropped"`
	Since      time.Time `json:"since"`
}

// Check is one thing that readiness depends on.
type Check struct {
	Name    string `json:"name"`
	Ready   bool   `json:"ready"`
	Message string `json:"message,omitempty"`
}

// Readiness is the answer of /readyz.
type Readiness struct {
	Ready  bool    `json:"ready"`
	Checks []Check `json:"checks"`
}
