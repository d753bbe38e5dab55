package cluster

import (
	"encoding/json"

	"felix.dev/felix/broker/catalog"
)

// protocol is the version of what brokers say to each other here. A broker joins
// only brokers of the same one.
const protocol = 1

// Methods of calls.
const (
	methodHello    = "cluster.hello"    // who are you
	methodJoin     = "cluster.join"     // let me in, and note where I am
	methodExchange = "cluster.exchange" // this is me and what I lead; and you?
	methodPropose  = "cluster.propose"  // to the metadata leader
	methodOperate  = "cluster.operate"  // to the metadata leader
	methodTransfer = "cluster.transfer" // to the leader of a group
	methodBarrier  = "cluster.barrier"  // to the metadata leader: how far is the catalog
	methodSync     = "cluster.sync"     // answer once the catalog is that far
	methodGone     = "cluster.gone"     // to a broker that was removed
)

// helloAnswer says who a broker is.
type helloAnswer struct {
	Node     string `json:"node"`
	Instance string `json:"instance"`
	Cluster  string `json:"cluster,omitempty"` // empty: none yet
	Founds   bool   `json:"founds,omitempty"`  // it is about to found one
}

// joinRequest asks the metadata leader to register a broker. Whoever gets it
// passes it on.
type joinRequest struct {
	Protocol int            `json:"protocol"`
	Broker   catalog.Broker `json:"broker"`
	Since    int64          `json:"since"` // which start of the broker this is
	// Cluster is the one that the broker's data is of. Empty: it has none.
	Cluster string `json:"cluster,omitempty"`
	// Passed says that it comes from another broker, and is not passed on again.
	Passed bool `json:"passed,omitempty"`
}

// joinAnswer says that a broker is registered.
type joinAnswer struct {
	Cluster string              `json:"cluster"`
	Index   uint64              `json:"index"` // the catalog has the broker from here on
	Brokers map[string]position `json:"brokers"`
}

// report is what a broker says about itself.
type report struct {
	Node     string             `json:"node"`
	Instance string             `json:"instance"`
	Peer     string             `json:"peer"`
	Since    int64              `json:"since"` // which start of the broker this is
	Heard    map[string]heardOf `json:"heard,omitempty"`
	Groups   []groupReport      `json:"groups,omitempty"`
	Moves    []moveReport       `json:"moves,omitempty"`
}

// groupReport is about a replica of a group.
type groupReport struct {
	Group     uint32         `json:"group"`
	Leading   bool           `json:"leading,omitempty"`
	Leader    string         `json:"leader,omitempty"` // node; empty: not known
	Term      uint64         `json:"term"`
	Applied   uint64         `json:"applied"`
	Last      uint64         `json:"last"`
	Stuck     string         `json:"stuck,omitempty"`     // why the replica takes nothing
	Restoring bool           `json:"restoring,omitempty"` // it installs a snapshot
	Next      string         `json:"next,omitempty"`      // what the leader does about the members, or waits for
	Members   []memberReport `json:"members,omitempty"`   // of the leader
}

// memberReport is what a leader knows of a member.
type memberReport struct {
	Node     string `json:"node"`
	Instance string `json:"instance"`
	Voter    bool   `json:"voter,omitempty"`
	CaughtUp bool   `json:"caught_up,omitempty"`
	Lag      uint64 `json:"lag,omitempty"` // entries
}

// moveReport is about a shard that is on its way to the broker.
type moveReport struct {
	Stream string `json:"stream"`
	Shard  uint32 `json:"shard"`
	From   string `json:"from"`
	Error  string `json:"error,omitempty"` // of the last attempt
}

// proposeRequest has the metadata leader append an entry.
type proposeRequest struct {
	Entry json.RawMessage `json:"entry"`
}

// proposeAnswer says that the entry is in the log and was applied.
type proposeAnswer struct {
	Index uint64 `json:"index"`
}

// operation is what an admin asks of the metadata leader.
type operation struct {
	Name  operationName `json:"name"`
	Node  string        `json:"node,omitempty"`
	Force bool          `json:"force,omitempty"`
	Group uint32        `json:"group,omitempty"`
	From  string        `json:"from,omitempty"`
	To    string        `json:"to,omitempty"`
}

// operationName names an operation.
type operationName string

// Operations.
const (
	operationRemove  operationName = "remove"
	operationMove    operationName = "move"
	operationBalance operationName = "balance"
)

// transferRequest asks the leader of a group to hand it over.
type transferRequest struct {
	Group uint32 `json:"group"`
	To    string `json:"to"` // node
}

// barrierAnswer is how far the catalog is.
type barrierAnswer struct {
	Index uint64 `json:"index"`
}

// goneNotice tells a broker that it was removed.
type goneNotice struct {
	Cluster  string `json:"cluster"`
	Instance string `json:"instance"`
}
