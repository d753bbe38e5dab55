package stream

// Name is what a client calls a stream.
type Name struct {
	Tenant, Namespace, Stream string
}

// String is "tenant/namespace/stream", the form permissions are checked against.
func (n Name) String() string { return n.Tenant + "/" + n.Namespace + "/" + n.Stream }

// Durability says what acknowledged means for a stream.
type Durability uint8

const (
	// Memory streams live in the tail ring only.
	Memory Durability = iota + 1
	// Durable streams acknowledge what is on this broker's disk.
	Durable
)

// String is the name used in the catalog and on the command line.
func (d Durability) String() string {
	switch d {
	case Memory:
		return "Memory"
	case Durable:
		return "Durable"
	}
	return "Unknown"
}

// OnFull says what happens when a subscription's lag passes its bound.
type OnFull uint8

const (
	// DropNew drops what arrives beyond the bound for that subscription.
	DropNew OnFull = iota
	// Block makes publishers wait for room, for a bounded time.
	Block
	// CatchUp lets the subscription go on from the log at its own pace.
	CatchUp
)

// String is the name used in the catalog and on the command line.
func (o OnFull) String() string {
	switch o {
	case DropNew:
		return "DropNew"
	case Block:
		return "Block"
	case CatchUp:
		return "CatchUp"
	}
	return "Unknown"
}

// ParseOnFull reads the name of a policy.
func ParseOnFull(s string) (OnFull, bool) {
	for _, o := range []OnFull{DropNew, Block, CatchUp} {
		if o.String() == s {
			return o, true
		}
	}
	return 0, false
}
