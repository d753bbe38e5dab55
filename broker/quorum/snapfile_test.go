package quorum

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"felix.dev/felix/broker/vfs"
	"felix.dev/felix/broker/vfs/faultfs"
)

var update = flag.Bool("update", false, "write the golden files")

func goldenHead() snapHead {
	return snapHead{Index: 1234, Term: 7, Configuration: 1200, Servers: []snapMember{{ID: "n1.0a1b", Voter: true}, {ID: "n2.2c3d"}}}
}

// TestSnapshotGolden: files of this version stay readable for ever.
func TestSnapshotGolden(t *testing.T) {
	path := filepath.Join("testdata", "v1", snapName(1234, 7))
	b, err := encodeSnap(goldenHead(), []byte("the manifest"))
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(golden, b); diff != "" {
		t.Errorf("written differently (-golden +now):\n%s", diff)
	}
	h, manifest, err := decodeSnap(golden)
	if err != nil || string(manifest) != "the manifest" {
		t.Errorf("manifest %q, %v", manifest, err)
	}
	if diff := cmp.Diff(goldenHead(), h); diff != "" {
		t.Errorf("head (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(goldenHead(), headOf(h.meta(12))); diff != "" {
		t.Errorf("through raft (-want +got):\n%s", diff)
	}
	for i := range golden {
		bad := append([]byte(nil), golden...)
		bad[i] ^= 0x10
		if _, _, err := decodeSnap(bad); !errors.Is(err, errSnap) {
			t.Errorf("a flipped bit in byte %d: %v", i, err)
		}
		if _, _, err := decodeSnap(golden[:i]); !errors.Is(err, errSnap) {
			t.Errorf("cut at %d: %v", i, err)
		}
	}
}

// TestReadSnaps: the newest counts, and what is left of others goes.
func TestReadSnaps(t *testing.T) {
	disk := faultfs.New(1)
	if err := vfs.MkdirAllSync(disk, "/g1", 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(name string, b []byte) {
		if err := vfs.WriteFileAtomic(disk, filepath.Join("/g1", name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, index := range []uint64{9, 1234, 70} {
		h := goldenHead()
		h.Index = index
		b, err := encodeSnap(h, []byte("m"))
		if err != nil {
			t.Fatal(err)
		}
		write(snapName(index, 7), b)
	}
	write("snapshot-x.snap"+vfs.TempSuffix, nil)
	m, _, _, err := readSnaps(disk, "/g1")
	if err != nil || m.Index != 1234 {
		t.Fatalf("newest: %+v, %v", m, err)
	}
	if list, err := disk.ReadDir("/g1"); err != nil || len(list) != 1 {
		t.Errorf("left in the directory: %v, %v", list, err)
	}
	write(snapName(2000, 7), []byte("damaged"))
	if _, _, _, err := readSnaps(disk, "/g1"); !errors.Is(err, errSnap) {
		t.Errorf("damaged newest: %v", err)
	}
}
