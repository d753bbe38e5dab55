package quorum

// Machine is what a group's entries are applied to. Recover comes first, once; then
// Apply, Snapshot and Restore are called by one goroutine, never two at a time.
type Machine interface {
	// Recover is given the newest manifest that this server has persisted or restored,
	// nil if there is none. The machine's own storage may be ahead of it: of entries that
	// were applied later, and of a Restore that was interrupted.
	Recover(manifest []byte) error
	// Apply takes a committed entry, in order. After Recover entries may repeat what the
	// machine's own storage holds. data must not be kept or changed. The result is what
	// Proposal.Wait returns where the entry was proposed. An Apply that
	// takes longer than NodeConfig.AppendTimeout counts as stuck: leadership is given away.
	Apply(index, term uint64, data []byte) any
	// Snapshot freezes what Apply has made of the entries so far. It comes between two
	// of them and must be quick.
	Snapshot() (Snapshot, error)
	// Restore replaces the state by the one that the manifest describes, up to the entry with this index,
	// fetching what is missing from the given server. It may take long. After an error
	// it is called again, with this manifest or a newer one: what it has fetched it keeps.
	Restore(index uint64, manifest []byte, from Server) error
}

// Interrupter may be implemented by a Machine. Interrupt is called as the group closes:
// an Apply that waits for a disk and a Restore must return soon then, with any result,
// and whatever Apply is given from then on is dropped.
type Interrupter interface{ Interrupt() }

// Snapshot is the state of a machine at one entry.
type Snapshot interface {
	// Persist returns the manifest. Everything that it describes is durable when it
	// returns. Apply goes on meanwhile.
	Persist() (manifest []byte, err error)
	// Release is called once when the snapshot is done with, persisted or not.
	Release()
}

// Leadership says that this server has begun or ceased to lead its group.
type Leadership struct {
	Leading bool
	Term    uint64 // in which it leads, or led
}
