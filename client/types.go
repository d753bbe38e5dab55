package client

import (
	"errors"
	"fmt"
	"strconv"

	"felix.dev/felix/broker/wire"
)

// Stream names a stream of the client's tenant.
type Stream struct {
	Namespace string
	Name      string
}

// String returns "namespace/name".
func (s Stream) String() string { return s.Namespace + "/" + s.Name }

// validate checks what the wire can carry; whether the stream exists is the broker's to say.
func (s Stream) validate() error {
	var errs []error
	for _, p := range []struct{ part, value string }{{"namespace", s.Namespace}, {"name", s.Name}} {
		switch {
		case p.value == "":
			errs = append(errs, fmt.Errorf("felix: stream %s is empty", p.part))
		case len(p.value) > maxNameLen:
			errs = append(errs, fmt.Errorf("felix: stream %s has %d bytes, at most %d are possible", p.part, len(p.value), maxNameLen))
		}
	}
	return errors.Join(errs...)
}

// maxNameLen is what the u16 length of a name on the wire can say.
const maxNameLen = 1<<16 - 1

// Message is one record to publish. The client copies Payload and Key before Publish returns, so both may be
// reused at once.
type Message struct {
	// Key routes the record to a shard. It is not stored with the record.
	Key []byte
	// Keyed says that Key is meant. An empty key is a key like any other; a message that is not keyed goes to
	// shard 0. A message with a non-empty Key is keyed whether this is set or not.
	Keyed   bool
	Payload []byte
}

func (m *Message) keyed() bool { return m.Keyed || len(m.Key) > 0 }

// Receipt is the broker's answer to an accepted record.
type Receipt struct {
	// Offset is where the record is in its shard, if HasOffset. A publisher in Unacked mode never has one.
	Offset    uint64
	HasOffset bool
}

// Event is one delivered record.
type Event struct {
	// Offset is the record's place in its shard, if HasOffset: true for every stream with a log.
	Offset    uint64
	HasOffset bool
	// Payload is the record. Who owns it depends on the call that returned the event: see Subscription.Next and
	// Subscription.NextBatch.
	Payload []byte
	// Skipped counts the offsets directly before Offset that hold no event (records the brokers keep for
	// themselves). Nothing was lost there.
	Skipped uint64
	// Gap counts the offsets before this event that held events which this subscription did not get: the broker
	// dropped them because the reader was too slow, or SubscribeConfig.SkipLost stepped over records that are no
	// longer retained. It is 0 in the normal case.
	Gap uint64
}

// Start says where a subscription begins. The zero value is Latest.
type Start struct {
	kind   startKind
	offset uint64
}

type startKind uint8

const (
	startLatest startKind = iota
	startEarliest
	startAt
)

// Latest starts at the readable end: only what is published from then on.
func Latest() Start { return Start{} }

// Earliest starts at the oldest record that is still retained.
func Earliest() Start { return Start{kind: startEarliest} }

// At starts exactly at offset, the first one the caller has not seen. An offset below the oldest retained one or
// past the end is refused with a *CursorError.
func At(offset uint64) Start { return Start{kind: startAt, offset: offset} }

// String returns "latest", "earliest" or the offset in decimal.
func (s Start) String() string {
	switch s.kind {
	case startLatest:
		return "latest"
	case startEarliest:
		return "earliest"
	case startAt:
		return strconv.FormatUint(s.offset, 10)
	}
	return "invalid"
}

// Shards is how a stream's keys are spread.
type Shards struct {
	Count   uint32
	Routing wire.Routing
}

// Broker is one broker of a cluster, as its topology lists it.
type Broker struct {
	NodeID string
	Addr   string
}

// ShardOwner says who leads a shard.
type ShardOwner struct {
	Shard      uint32
	NodeID     string // empty if there is no leader, or the broker is not in a cluster
	Addr       string // empty if not known
	Generation uint64
	// Unavailable says why there is no leader; empty if there is one.
	Unavailable string
}
