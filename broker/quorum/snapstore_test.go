package quorum

import (
	"testing"

	"github.com/hashicorp/raft"

	"felix.dev/felix/broker/vfs/faultfs"
)

// TestOvertakenSnapshot: a snapshot of this server's own that was begun before one was
// installed, and ends after it, does not take its place: the entries between are gone.
func TestOvertakenSnapshot(t *testing.T) {
	disk := faultfs.New(1)
	if err := disk.MkdirAll("/g", 0o700); err != nil {
		t.Fatal(err)
	}
	g := testGroup()
	base := uint64(0)
	s := &snapStore{g: g, fs: disk, dir: "/g", taken: func(index, _ uint64) { base = index }}
	members := raft.Configuration{Servers: []raft.Server{{ID: "a.i0", Address: "a.i0"}}}
	begin := func(index uint64, own bool) *snapSink {
		sink, err := s.Create(raft.SnapshotVersionMax, index, 2, members, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		k := sink.(*snapSink) //nolint:errcheck // it is what Create makes
		k.own = own
		if _, err := k.Write([]byte{byte(index)}); err != nil {
			t.Fatal(err)
		}
		return k
	}
	slow := begin(10, true)
	if err := begin(90, false).Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.restored(); err != nil {
		t.Fatal(err)
	}
	if err := slow.Close(); err == nil {
		t.Error("an older snapshot was taken over: raft would go back to it")
	}
	if base != 90 {
		t.Errorf("the log believes in a snapshot up to %d, want 90", base)
	}
	newest, manifest, _, err := readSnaps(disk, "/g")
	if err != nil || newest == nil || newest.Index != 90 || string(manifest) != string([]byte{90}) {
		t.Errorf("after a restart the newest is %+v with %v, %v", newest, manifest, err)
	}
	if err := begin(91, true).Close(); err != nil || base != 91 {
		t.Errorf("the next one: %v, base %d", err, base)
	}
}
