package catalog

import "time"

// Kind names a command in its encoded form.
type Kind string

// Command is one change of the State. The types in this file are all there are.
// A command carries everything that its outcome depends on beside the state:
// nothing random, no clock and no configuration is read when it is applied, so
// that all brokers come to the same state.
//
// Each may be proposed again when its outcome is not known: what is done already
// is success.
type Command interface {
	kind() Kind
	// apply makes the change, or returns why it is refused.
	apply(t *transition) error
}

// FoundCluster makes a cluster of one broker. Streams of that broker follow with
// ImportStreams; see Founding.
type FoundCluster struct {
	Cluster  string   `json:"cluster"` // id, random
	Settings Settings `json:"settings"`
	Founder  Broker   `json:"founder"`
	// Importing says that ImportStreams and FinishImport follow.
	Importing bool `json:"importing,omitempty"`
}

// ImportStreams brings streams of the founder in, a page at a time.
type ImportStreams struct {
	Entries []Entry `json:"entries,omitempty"`
	Graves  []grave `json:"graves,omitempty"`
	Floor   uint64  `json:"floor,omitempty"`
}

// FinishImport says that all of the founder's streams are in.
type FinishImport struct{}

// CreateStream adds a stream. When the stream is there because of the same request
// id, or with the same settings, that is success without Result.Created.
type CreateStream struct {
	Spec        StreamSpec `json:"spec"`
	Incarnation string     `json:"incarnation"` // NewIncarnation
	RequestID   string     `json:"request_id,omitempty"`
	// Places are who has the shards: Group or Owner of each. Only in a cluster.
	Places []ShardPlace `json:"places,omitempty"`
}

// UpdateStream changes a stream's settings.
type UpdateStream struct {
	Name        Name   `json:"name"`
	Incarnation string `json:"incarnation,omitempty"` // empty: whichever lives
	Change      Change `json:"change"`
	// Places are who has the shards that are added. Only in a cluster.
	Places []ShardPlace `json:"places,omitempty"`
}

// SealStream begins a deletion: nothing more is published, and whoever leads or
// owns a shard says with ReportEnds where it ends. Data may go when the stream
// was buried, not before.
type SealStream struct {
	Name        Name   `json:"name"`
	Incarnation string `json:"incarnation"`
}

// ReportEnds says where shards of a sealed stream end. The last one that was
// missing buries the stream.
type ReportEnds struct {
	Name        Name       `json:"name"`
	Incarnation string     `json:"incarnation"`
	Ends        []ShardEnd `json:"ends"`
}

// DeleteStream removes a stream at once: of a single broker, or of a cluster when
// who knows an end will never come back.
type DeleteStream struct {
	Name        Name     `json:"name"`
	Incarnation string   `json:"incarnation,omitempty"` // empty: whichever lives
	Ends        []uint64 `json:"ends"`                  // of all shards
}

// ReserveOffsets persists marks that offsets of memory shards stay below.
type ReserveOffsets struct {
	Marks []Mark `json:"marks"`
}

// Mark is one shard's: its owner may hand out every offset below UpTo. In a cluster
// it is passed over unless Epoch is the owner's still, so that nobody reserves for a
// shard that has moved: look at Entry.Reserved for what came of it.
type Mark struct {
	Name        Name   `json:"name"`
	Incarnation string `json:"incarnation"`
	Shard       uint32 `json:"shard"`
	Epoch       uint64 `json:"epoch,omitempty"`
	UpTo        uint64 `json:"up_to"`
}

// RegisterBroker adds a broker, or says what has changed about it: its addresses,
// zone and version. Another instance under a known node id is refused unless it
// names the instance that it replaces.
type RegisterBroker struct {
	Broker   Broker `json:"broker"`
	Replaces string `json:"replaces,omitempty"`
}

// SetDraining says whether a broker shall hold nothing.
type SetDraining struct {
	Node     string `json:"node"`
	Draining bool   `json:"draining"`
}

// RemoveBroker takes a broker out of the cluster; its instance cannot come back.
// Refused (HoldsError) while it holds anything.
type RemoveBroker struct {
	Node     string `json:"node"`
	Instance string `json:"instance,omitempty"` // empty: whichever is registered
	// Force gives up the shards that only this broker has: it will never come back.
	// It does not apply to groups, which move to others by themselves.
	Force bool `json:"force,omitempty"`
}

// SetSettings changes how many replicas groups shall have and the bounds; zero
// fields stay as they are. The number of groups never changes.
type SetSettings struct {
	Settings Settings `json:"settings"`
}

// SetTargets says which nodes shall hold groups.
type SetTargets struct {
	Targets []GroupTarget `json:"targets"`
}

// ReportGroup is what a group's leader says about it. One of an earlier term than
// the last is ErrStale.
type ReportGroup struct {
	ID      uint32   `json:"id"`
	Term    uint64   `json:"term"`
	Leader  string   `json:"leader"` // node
	Members []Member `json:"members"`
}

// MoveShard names a shard with one owner, as whoever moves it has seen it.
type MoveShard struct {
	Name        Name   `json:"name"`
	Incarnation string `json:"incarnation"`
	Shard       uint32 `json:"shard"`
	Epoch       uint64 `json:"epoch"`
	To          string `json:"to"` // node
}

// BeginMove says that a shard is being moved. Its owner serves it until it has
// handed it over.
type BeginMove struct{ MoveShard }

// FinishMove makes the node that a shard is being moved to its owner.
type FinishMove struct{ MoveShard }

// CancelMove leaves a shard with its owner.
type CancelMove struct{ MoveShard }

// Apply makes the change that cmd asks for; at is the time that the command
// carries, index its place in the log of commands. A command that was applied
// before (index not above Index, and not 0) does nothing. A refusal is in the
// Result and changes nothing but Index.
func (s *State) Apply(index uint64, cmd Command, at time.Time) (*State, Result) {
	return s.transit(index, cmd, at, s.settings)
}
