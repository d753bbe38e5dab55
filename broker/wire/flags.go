package wire

// Flags are the flag bits of a frame header. A peer sets a bit only toward a
// peer that offered or advertised it.
type Flags uint16

// Flag bits. 0 means that the payload is one JSON message.
const (
	FlagPublish           Flags = 0x0001 // binary publish batch
	FlagEventsLegacy      Flags = 0x0002 // event batch that names its subscription
	FlagEvents            Flags = 0x0004 // event batch, shared form
	FlagPublishAcked      Flags = 0x0008 // with FlagPublish: an answer is owed
	FlagAck               Flags = 0x0010 // answer to an acked publish
	FlagEventOffsets      Flags = 0x0020 // with events: base offset present
	FlagPublishKeyed      Flags = 0x0040 // with FlagPublish: routing key present
	FlagAckOwner          Flags = 0x0080 // with FlagAck: shard owner named
	FlagPublishIdempotent Flags = 0x0100 // with acked publish: producer id and sequence
	FlagAckCode           Flags = 0x0200 // with failed ack: code and retry class
	FlagAckDetail         Flags = 0x0400 // with FlagAckCode: reason and wait
	FlagEventSkipped      Flags = 0x0800 // with FlagEventOffsets: offsets without an event
	FlagAckOffset         Flags = 0x1000 // with successful ack: offset of the first record
	FlagEventPublisher    Flags = 0x2000 // with events: publisher name
	FlagEventTimes        Flags = 0x4000 // with events: append time of each event

	// KnownFlags are all bits this package understands.
	KnownFlags Flags = 0x7FFF
	// BaseFlags is what a peer that says nothing about flags understands.
	BaseFlags = FlagPublish | FlagEventsLegacy | FlagEvents
)

// Has reports whether all bits of want are set.
func (f Flags) Has(want Flags) bool { return f&want == want }

// Modifiers that may stand beside each leading bit.
const (
	publishModifiers = FlagPublishAcked | FlagPublishKeyed | FlagPublishIdempotent
	ackModifiers     = FlagAckOwner | FlagAckCode | FlagAckDetail | FlagAckOffset
	eventModifiers   = FlagEventOffsets | FlagEventSkipped | FlagEventPublisher | FlagEventTimes
)

// Kind is what a frame is, from its flags.
type Kind uint8

// Frame kinds. The zero value is no kind.
const (
	KindMessage Kind = iota + 1
	KindPublish
	KindEvents
	KindEventsLegacy
	KindAck
)

func (k Kind) String() string {
	switch k {
	case KindMessage:
		return "message"
	case KindPublish:
		return "publish"
	case KindEvents:
		return "events"
	case KindEventsLegacy:
		return "legacy events"
	case KindAck:
		return "ack"
	}
	return "no kind"
}

// Kind says what a frame with these flags carries. The error is a DecodeError
// around an UnknownFlagsError or a FlagsError.
func (f Flags) Kind() (Kind, error) {
	if unknown := f &^ KnownFlags; unknown != 0 {
		return 0, decodeErr("flags", &UnknownFlagsError{Flags: unknown})
	}
	kind, allowed := KindMessage, Flags(0)
	switch lead := f & (FlagPublish | FlagEventsLegacy | FlagEvents | FlagAck); lead {
	case 0:
	case FlagPublish:
		kind, allowed = KindPublish, lead|publishModifiers
	case FlagEventsLegacy:
		kind, allowed = KindEventsLegacy, lead|eventModifiers
	case FlagEvents:
		kind, allowed = KindEvents, lead|eventModifiers
	case FlagAck:
		kind, allowed = KindAck, lead|ackModifiers
	default:
		return 0, flagsErr(f, "more than one kind of frame")
	}
	switch {
	case f&^allowed != 0:
		return 0, flagsErr(f, "a modifier of another kind of frame")
	case f.Has(FlagPublishIdempotent) && !f.Has(FlagPublishAcked):
		return 0, flagsErr(f, "idempotent without acked")
	case f.Has(FlagEventSkipped) && !f.Has(FlagEventOffsets):
		return 0, flagsErr(f, "skipped without offsets")
	case f.Has(FlagAckDetail) && !f.Has(FlagAckCode):
		return 0, flagsErr(f, "detail without code")
	case f.Has(FlagAckCode) && f.Has(FlagAckOffset):
		return 0, flagsErr(f, "code of a failure beside the offset of a success")
	}
	return kind, nil
}

func flagsErr(f Flags, reason string) error {
	return decodeErr("flags", &FlagsError{Flags: f, Reason: reason})
}
