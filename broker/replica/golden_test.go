package replica

import (
	"bytes"
	"encoding/hex"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"felix.dev/felix/broker/seglog"
	"felix.dev/felix/broker/stream"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden holds bytes against a file of hexadecimal digits.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name+".hex")
	if *update {
		var text bytes.Buffer
		for b := got; len(b) > 0; {
			n := min(32, len(b))
			text.WriteString(hex.EncodeToString(b[:n]) + "\n")
			b = b[n:]
		}
		if err := os.WriteFile(path, text.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want, err := hex.DecodeString(string(bytes.ReplaceAll(text, []byte("\n"), nil)))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got) {
		t.Errorf("%s is %x, the golden file says %x", name, got, want)
	}
}

func goldenPublishes() []stream.Publish {
	return []stream.Publish{
		{Records: region("hello")},
		{Records: region("a", "", "c"), HasProducer: true, Producer: 0x1122334455667788, Sequence: 9},
	}
}

func goldenEntries(t *testing.T) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	b := appendBatchHeader(nil, 1_700_000_000_000_001, 2)
	for i, p := range goldenPublishes() {
		b = appendItem(b, uint32(i+1), &p)
	}
	out["batch"] = b
	for name, c := range map[string]change{
		"open":      {kindOpen, Opening{testKey(2), 77, []byte(`{"maxBytes":1}`)}},
		"configure": {kindConfigure, Opening{Key: testKey(2), Spec: []byte(`{}`)}},
		"seal":      {kindSeal, Opening{Key: testKey(2)}},
		"drop":      {kindDrop, Opening{Key: testKey(2)}},
	} {
		b, err := c.encode()
		if err != nil {
			t.Fatal(err)
		}
		out[name] = b
	}
	out["trim"] = appendTrims(nil, []trim{{1, 100}, {7, 1 << 40}})
	return out
}

// What is in a log of entries is read by every later release.
func TestGoldenEntries(t *testing.T) {
	for name, b := range goldenEntries(t) {
		golden(t, name, b)
	}
	got := goldenEntries(t)
	r := reader{b: got["batch"][batchHeader:]}
	for i, want := range goldenPublishes() {
		slot, b, err := readItem(&r)
		if err != nil || slot != uint32(i+1) {
			t.Fatalf("batch %d: slot %d, %v", i, slot, err)
		}
		if d := cmp.Diff(stream.Batch{Records: want.Records, HasProducer: want.HasProducer, Producer: want.Producer, Sequence: want.Sequence}, b); d != "" {
			t.Errorf("batch %d (-want +got):\n%s", i, d)
		}
	}
	if err := r.end("the batches"); err != nil {
		t.Error(err)
	}
	c, err := readChange(kindOpen, got["open"][entryHeader:])
	if d := cmp.Diff(Opening{testKey(2), 77, []byte(`{"maxBytes":1}`)}, c.Opening); err != nil || d != "" {
		t.Errorf("open: %v (-want +got):\n%s", err, d)
	}
	if trims, err := readTrims(got["trim"][entryHeader:]); err != nil || len(trims) != 2 || trims[1] != (trim{7, 1 << 40}) {
		t.Errorf("trims: %v %v", trims, err)
	}
}

func goldenManifest() *manifest {
	return &manifest{group: 3, nextSlot: 9, shards: []manifestEntry{
		{1, Opening{testKey(0), 5, []byte(`{"x":1}`)}, stream.ReplicaState{First: 5, Next: 90, Oldest: 40, Term: 6, Producers: []byte{1, 2, 3}}},
		{8, Opening{testKey(1), 0, []byte{}}, stream.ReplicaState{Sealed: true, Producers: []byte{}}},
	}}
}

func TestGoldenManifest(t *testing.T) {
	b, err := goldenManifest().encode()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "manifest", b)
	got, err := parseManifest(3, b)
	if err != nil {
		t.Fatal(err)
	}
	for i := range got.shards { // nothing is nothing
		if got.shards[i].Spec == nil {
			got.shards[i].Spec = []byte{}
		}
		if got.shards[i].state.Producers == nil {
			got.shards[i].state.Producers = []byte{}
		}
	}
	if d := cmp.Diff(goldenManifest(), got, cmp.AllowUnexported(manifest{}, manifestEntry{})); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// Whatever the bytes are, nothing panics, and damage is found.
func TestDamagedBytesAreRefused(t *testing.T) {
	m, err := goldenManifest().encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parseManifest(4, m); err == nil {
		t.Error("a manifest of another group was taken")
	}
	for i := range m {
		for _, bad := range [][]byte{m[:i], append(append([]byte(nil), m[:i]...), append([]byte{m[i] ^ 0x40}, m[i+1:]...)...)} {
			if _, err := parseManifest(3, bad); err == nil && i >= 12 {
				t.Fatalf("a manifest that is damaged at %d was taken", i)
			}
		}
	}
	for name, b := range goldenEntries(t) {
		for i := entryHeader; i < len(b); i++ {
			short := b[entryHeader:i]
			var err error
			switch b[1] {
			case kindBatch:
				if i < batchHeader {
					continue
				}
				r := reader{b: b[batchHeader:i]}
				for range 2 {
					if _, _, err = readItem(&r); err != nil {
						break
					}
				}
			case kindTrim:
				_, err = readTrims(short)
			default:
				_, err = readChange(b[1], short)
			}
			if err == nil {
				t.Errorf("%s cut at %d was taken", name, i)
			}
		}
	}
}

// Pages come through as they were sent, and damaged ones not at all.
func TestPages(t *testing.T) {
	want := page{status: statusOK, oldest: 3, next: 1 << 40, records: []seglog.Record{
		{Kind: seglog.KindGenerationStart, Base: 7, Count: 1, TimeMicros: -1, Frame: []byte{1, 2}},
		{Kind: seglog.KindEvents, Base: 8, Count: 3, TimeMicros: 5, HasProducer: true, Producer: 1, Sequence: 2, Frame: []byte("frame")},
	}}
	b := want.append(nil)
	got, _, err := readPage(bytes.NewReader(b), nil)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(page{})); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for i := responseLen - 12; i < len(b); i++ {
		bad := bytes.Clone(b)
		bad[i] ^= 0x10
		if _, _, err := readPage(bytes.NewReader(bad), nil); err == nil {
			t.Errorf("a page that is damaged at %d was taken", i)
		}
	}
	q := request{3, testKey(2), 99, 1 << 20}
	raw, err := q.append(nil)
	if err != nil {
		t.Fatal(err)
	}
	back, err := readRequest(bytes.NewReader(raw))
	if err != nil || back != q {
		t.Errorf("a request: %+v, %v; want %+v", back, err, q)
	}
}
