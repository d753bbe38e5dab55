package quorum

import (
	"encoding/binary"
	"errors"

	"github.com/hashicorp/raft"
)

var errFrame = errors.New("quorum: malformed frame")

// decoder takes a body apart. After the first mistake it gives zeros, and end says so.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) uint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.b, d.bad = nil, true
		return 0
	}
	d.b = d.b[n:]
	return v
}

// bytes are a part of the body, not a copy.
func (d *decoder) bytes() []byte {
	n := d.uint()
	if n > uint64(len(d.b)) {
		d.b, d.bad = nil, true
		return nil
	}
	p := d.b[:n:n]
	d.b = d.b[n:]
	return p
}

func (d *decoder) end() error {
	if d.bad || len(d.b) != 0 {
		return errFrame
	}
	return nil
}

// appendUints is for bodies of numbers.
func appendUints(b []byte, values ...uint64) []byte {
	for _, v := range values {
		b = binary.AppendUvarint(b, v)
	}
	return b
}

func appendBytes(b, p []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(p))), p...)
}

// Bits of flags.
const (
	flagSuccess   = 1 << 0
	flagNoBackoff = 1 << 1
	flagTransfer  = 1 << 2
	flagAbsent    = 1 << 3 // the group is not open there
	flagLater     = 1 << 4 // not answered in time
)

func bit(on bool, value uint64) uint64 {
	if on {
		return value
	}
	return 0
}

// appendHead encodes an AppendEntries request but for the data of its entries: term,
// previous index and term, commit, number of entries, and then, before the data of
// each, its index, term, type and the length of the data.
func appendHead(b []byte, a *raft.AppendEntriesRequest) []byte {
	return appendUints(b, a.Term, a.PrevLogEntry, a.PrevLogTerm, a.LeaderCommitIndex, uint64(len(a.Entries)))
}

func appendEntryHead(b []byte, l *raft.Log, size int) []byte {
	return appendUints(b, l.Index, l.Term, uint64(l.Type), uint64(size))
}

// maxEntries bounds the entries of one request, whatever it says: each takes memory
// beyond its bytes here.
const maxEntries = 4096

func decodeAppend(body []byte, from []byte) (*raft.AppendEntriesRequest, error) {
	d := decoder{b: body}
	a := &raft.AppendEntriesRequest{
		RPCHeader: header(from),
		Term:      d.uint(), PrevLogEntry: d.uint(), PrevLogTerm: d.uint(), LeaderCommitIndex: d.uint(),
	}
	n := d.uint()
	if n > maxEntries {
		return nil, errFrame
	}
	entries := make([]raft.Log, n)
	a.Entries = make([]*raft.Log, n)
	for i := range entries {
		entries[i] = raft.Log{Index: d.uint(), Term: d.uint(), Type: raft.LogType(d.uint()), Data: d.bytes()}
		a.Entries[i] = &entries[i]
		if i > 0 && entries[i].Index != entries[i-1].Index+1 || !plausibleEntry(&entries[i]) {
			return nil, errFrame
		}
	}
	return a, d.end()
}

func encodeAppended(r *raft.AppendEntriesResponse) []byte {
	return appendUints(nil, r.Term, r.LastLog, bit(r.Success, flagSuccess)|bit(r.NoRetryBackoff, flagNoBackoff))
}

func decodeAppended(body []byte, from []byte, into *raft.AppendEntriesResponse) error {
	d := decoder{b: body}
	into.RPCHeader = header(from)
	into.Term, into.LastLog = d.uint(), d.uint()
	flags := d.uint()
	into.Success, into.NoRetryBackoff = flags&flagSuccess != 0, flags&flagNoBackoff != 0
	return d.end()
}

func encodeVote(term, lastIndex, lastTerm uint64, transfer bool) []byte {
	return appendUints(nil, term, lastIndex, lastTerm, bit(transfer, flagTransfer))
}

func decodeVote(body []byte, from []byte) (*raft.RequestVoteRequest, error) {
	d := decoder{b: body}
	v := &raft.RequestVoteRequest{
		RPCHeader: header(from),
		Term:      d.uint(), LastLogIndex: d.uint(), LastLogTerm: d.uint(),
	}
	v.LeadershipTransfer = d.uint()&flagTransfer != 0
	return v, d.end()
}

// encodeSaid is the answer to votes and installs: a term and yes or no.
func encodeSaid(term uint64, yes bool) []byte { return appendUints(nil, term, bit(yes, flagSuccess)) }

func decodeSaid(body []byte) (term uint64, yes bool, err error) {
	d := decoder{b: body}
	term = d.uint()
	yes = d.uint()&flagSuccess != 0
	return term, yes, d.end()
}

func encodeInstall(i *raft.InstallSnapshotRequest) []byte {
	b := appendUints(nil, uint64(i.SnapshotVersion), i.Term, i.LastLogIndex, i.LastLogTerm, i.ConfigurationIndex, uint64(i.Size))
	return appendBytes(b, i.Configuration)
}

// decodeInstall also returns the manifest, which follows the request.
func decodeInstall(body []byte, from []byte) (*raft.InstallSnapshotRequest, []byte, error) {
	d := decoder{b: body}
	i := &raft.InstallSnapshotRequest{
		RPCHeader:       header(from),
		SnapshotVersion: raft.SnapshotVersion(d.uint()),
		Term:            d.uint(), LastLogIndex: d.uint(), LastLogTerm: d.uint(), ConfigurationIndex: d.uint(), Size: int64(d.uint()),
	}
	i.Configuration = d.bytes()
	manifest := d.b
	if d.bad || int64(len(manifest)) != i.Size || !plausibleConfiguration(i.Configuration) {
		return nil, nil, errFrame
	}
	return i, manifest, nil
}

// plausibleEntry keeps entries from raft that it would panic at.
func plausibleEntry(l *raft.Log) bool {
	if l.Index == 0 || l.Term == 0 {
		return false
	}
	switch l.Type {
	case raft.LogCommand, raft.LogNoop, raft.LogBarrier:
		return true
	case raft.LogConfiguration:
		return plausibleConfiguration(l.Data)
	default: // raft's formats from before it had configurations
		return false
	}
}

// plausibleConfiguration keeps bytes from raft that it would panic at.
func plausibleConfiguration(b []byte) (ok bool) {
	defer func() { ok = recover() == nil }()
	return len(raft.DecodeConfiguration(b).Servers) > 0
}

// header is the part that all of raft's messages have. Who sent one is known from its
// connection, and a server's address is its id.
func header(from []byte) raft.RPCHeader {
	return raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: from, Addr: from}
}
