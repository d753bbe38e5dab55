package quorum

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"
)

var leaderName = []byte("n1.i1")

func testConfiguration() raft.Configuration {
	return raft.Configuration{Servers: []raft.Server{
		{ID: "n1.i1", Address: "n1.i1"},
		{ID: "n2.i1", Address: "n2.i1", Suffrage: raft.Nonvoter},
	}}
}

func encodeWhole(a *raft.AppendEntriesRequest) []byte {
	b := appendHead(nil, a)
	for _, e := range a.Entries {
		b = append(appendEntryHead(b, e, len(e.Data)), e.Data...)
	}
	return b
}

func TestCodec(t *testing.T) {
	a := &raft.AppendEntriesRequest{
		RPCHeader: header(leaderName), Term: 7, PrevLogEntry: 300, PrevLogTerm: 6, LeaderCommitIndex: 299,
		Entries: []*raft.Log{
			{Index: 301, Term: 7, Type: raft.LogCommand, Data: []byte("data")},
			{Index: 302, Term: 7, Type: raft.LogNoop, Data: []byte{}},
			{Index: 303, Term: 7, Type: raft.LogConfiguration, Data: raft.EncodeConfiguration(testConfiguration())},
		},
	}
	got, err := decodeAppend(encodeWhole(a), leaderName)
	if diff := cmp.Diff(a, got); diff != "" || err != nil {
		t.Errorf("append: %v (-want +got):\n%s", err, diff)
	}

	said := raft.AppendEntriesResponse{RPCHeader: header(leaderName), Term: 7, LastLog: 1 << 40, Success: true, NoRetryBackoff: true}
	var heard raft.AppendEntriesResponse
	if err := decodeAppended(encodeAppended(&said), leaderName, &heard); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(said, heard); diff != "" {
		t.Errorf("appended (-want +got):\n%s", diff)
	}

	vote, err := decodeVote(encodeVote(8, 303, 7, true), leaderName)
	want := &raft.RequestVoteRequest{RPCHeader: header(leaderName), Term: 8, LastLogIndex: 303, LastLogTerm: 7, LeadershipTransfer: true}
	if diff := cmp.Diff(want, vote); diff != "" || err != nil {
		t.Errorf("vote: %v (-want +got):\n%s", err, diff)
	}

	i := &raft.InstallSnapshotRequest{
		RPCHeader: header(leaderName), SnapshotVersion: 1, Term: 8, LastLogIndex: 303, LastLogTerm: 7,
		Configuration: raft.EncodeConfiguration(testConfiguration()), ConfigurationIndex: 303, Size: 8,
	}
	install, manifest, err := decodeInstall(append(encodeInstall(i), "manifest"...), leaderName)
	if diff := cmp.Diff(i, install); diff != "" || err != nil || string(manifest) != "manifest" {
		t.Errorf("install: %v, manifest %q (-want +got):\n%s", err, manifest, diff)
	}

	term, yes, err := decodeSaid(encodeSaid(9, true))
	if term != 9 || !yes || err != nil {
		t.Errorf("said: %d, %v, %v", term, yes, err)
	}
}

// TestEntriesThatRaftPanicsAt: they do not get as far.
func TestEntriesThatRaftPanicsAt(t *testing.T) {
	for name, e := range map[string]raft.Log{
		"old format":        {Index: 1, Term: 1, Type: raft.LogAddPeerDeprecated},
		"unknown type":      {Index: 1, Term: 1, Type: 77},
		"bad configuration": {Index: 1, Term: 1, Type: raft.LogConfiguration, Data: []byte("no")},
		"no term":           {Index: 1, Type: raft.LogNoop},
		"no index":          {Term: 1, Type: raft.LogNoop},
	} {
		if _, err := decodeAppend(encodeWhole(&raft.AppendEntriesRequest{Term: 1, Entries: []*raft.Log{&e}}), leaderName); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(encodeWhole(&raft.AppendEntriesRequest{Term: 7, Entries: []*raft.Log{{Index: 1, Term: 7, Data: []byte("x")}}}))
	f.Add(append(encodeInstall(&raft.InstallSnapshotRequest{Configuration: raft.EncodeConfiguration(testConfiguration()), Size: 1}), 'm'))
	f.Add(encodeVote(1, 2, 3, true))
	f.Fuzz(func(t *testing.T, b []byte) {
		if a, err := decodeAppend(b, leaderName); err == nil {
			total := 0
			for _, e := range a.Entries {
				total += len(e.Data)
			}
			if total > len(b) {
				t.Errorf("%d bytes of data from %d bytes", total, len(b))
			}
		}
		if i, m, err := decodeInstall(b, leaderName); err == nil && (int64(len(m)) != i.Size || !bytes.HasSuffix(b, m)) {
			t.Error("manifest is not the rest")
		}
		var r raft.AppendEntriesResponse
		_ = decodeAppended(b, leaderName, &r)
		_, _ = decodeVote(b, leaderName)
		_, _, _ = decodeSaid(b)
		(&beats{of: map[uint32]*beat{0: {}, 1: {term: 1}}}).answered(time.Now(), b, nil)
		_, _, _ = decodeSnap(b)
		_, _, _, _ = parseTarget(string(b))
	})
}
