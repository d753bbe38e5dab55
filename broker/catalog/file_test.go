package catalog

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite golden files")

// sample makes a catalog with something of everything.
func sample(t *testing.T, cfg Config) *Catalog {
	t.Helper()
	c := open(t, cfg)
	if _, _, err := c.Create(StreamSpec{
		Name: name("orders"), Shards: 2, Routing: 1,
		Retention: Retention{MaxBytes: 1 << 30, MaxAge: 24 * time.Hour},
		Queue:     Queue{Entries: 8, Bytes: 64 << 10, OnFull: CatchUp},
		TailBytes: 1 << 20, Fsync: Fsync{Mode: FsyncInterval, Every: time.Second},
	}, "request-1"); err != nil {
		t.Fatal(err)
	}
	create(t, c, memory("ticks", 1))
	create(t, c, spec("gone"))
	if _, err := c.Delete(name("gone"), []uint64{41}); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestGoldenFile(t *testing.T) {
	const golden = "testdata/catalog-v1.json"
	cfg := testConfig(t)
	c := sample(t, cfg)
	got, err := os.ReadFile(cfg.Path)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(got), string(want)); diff != "" {
		t.Errorf("what is written has changed (-got +want):\n%s", diff)
	}
	same(t, open(t, Config{Path: golden}), c)
}

func TestEncodingIsStable(t *testing.T) {
	c := sample(t, testConfig(t))
	first, err := encode(c.current.Load())
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		again, err := encode(c.current.Load())
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first, again) {
			t.Fatal("same state, other bytes")
		}
	}
}

// listing is every file under dir with its content.
func listing(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	if err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		out[path] = string(data)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// B58: damage is refused with a message that helps, and nothing is removed.
func TestDamagedFile(t *testing.T) {
	cfg := testConfig(t)
	sample(t, cfg)
	intact, err := os.ReadFile(cfg.Path)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(cfg.Path)
	data := filepath.Join(dir, "streams", "01010101010101010101010101010101", "0")
	if err := os.MkdirAll(data, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, "x.log"), []byte("records"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused := func(what string, damaged []byte) {
		t.Helper()
		if err := os.WriteFile(cfg.Path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		before := listing(t, dir)
		_, err := Open(cfg)
		var corrupt *CorruptError
		var version *VersionError
		switch {
		case errors.As(err, &corrupt):
			for _, part := range []string{cfg.Path, "damaged", "nothing was changed or removed", "restore"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%s: %q is not in %v", what, part, err)
				}
			}
		case errors.As(err, &version):
		default:
			t.Fatalf("%s: got %v, want it refused", what, err)
		}
		if diff := cmp.Diff(listing(t, dir), before); diff != "" {
			t.Errorf("%s: something changed on disk:\n%s", what, diff)
		}
	}
	for n := range len(intact) - 1 { // without its last newline the file is whole
		refused(fmt.Sprintf("cut to %d bytes", n), intact[:n])
	}
	for i := range intact {
		for _, bit := range []byte{0x01, 0x10, 0x80} {
			damaged := bytes.Clone(intact)
			damaged[i] ^= bit
			if _, err := decode(cfg.Path, damaged); err == nil && i != len(intact)-1 {
				// A changed key of the envelope is a missing key, and white space
				// does not carry anything: nothing else may pass.
				t.Errorf("bit %#x of byte %d flipped: accepted:\n%s", bit, i, damaged)
			}
		}
	}
	refused("zeros", make([]byte, len(intact)))
	refused("zeros at the end", append(bytes.Clone(intact[:len(intact)/2]), make([]byte, len(intact)/2)...))
	refused("written twice", append(bytes.Clone(intact), intact...))
	refused("something else", []byte(`{"hello":"world"}`))
	refused("null", []byte("null"))
	refused("edited by hand", bytes.Replace(intact, []byte(`"shards":2`), []byte(`"shards":1`), 1))
}

// envelope wraps a body that nobody would write, with a good checksum.
func envelope(version int, body string) []byte {
	return fmt.Appendf(nil, `{"format":"felix-catalog","version":%d,"crc32c":"%s","body":%s}`, version, checksum([]byte(body)), body)
}

func TestContentThatMakesNoSense(t *testing.T) {
	const good = `{"tenant":"t","namespace":"n","stream":"s","incarnation":"01010101010101010101010101010101","created":"2026-11-30T12:00:00Z","shards":1,"durability":"Durable","routing":"modulo"}`
	with := func(old, changed string) string { return strings.Replace(good, old, changed, 1) }
	for what, streams := range map[string]string{
		"twice":           good + "," + good,
		"bad name":        with(`"t"`, `"../t"`),
		"no shards":       with(`"shards":1`, `"shards":0`),
		"negative shards": with(`"shards":1`, `"shards":-1`),
		"durability":      with("Durable", "Quorum"),
		"routing":         with("modulo", "magic"),
		"incarnation":     with("0101", ""),
		"no marks":        with("Durable", "Memory"),
		"marks":           with(`"shards":1`, `"shards":1,"reserved":[5]`),
	} {
		_, err := decode("c", envelope(1, `{"streams":[`+streams+`]}`))
		if _, ok := errors.AsType[*CorruptError](err); !ok {
			t.Errorf("%s: got %v", what, err)
		}
	}
	if _, err := decode("c", envelope(1, `{"streams":[`+good+`],"later":{"x":1}}`)); err != nil {
		t.Errorf("fields of a later minor change: %v", err)
	}
}

func TestVersionOfALaterRelease(t *testing.T) {
	_, err := decode("c", envelope(3, `{"anything":[]}`))
	var version *VersionError
	if !errors.As(err, &version) || version.Version != 3 || version.Understood != 2 {
		t.Errorf("got %v", err)
	}
}

func TestUnreadableFileIsNotAnEmptyCatalog(t *testing.T) {
	cfg := testConfig(t)
	cfg.Path = t.TempDir() // a directory
	if _, err := Open(cfg); err == nil {
		t.Error("opened")
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(envelope(1, `{"floor":1,"streams":[],"graves":[{"tenant":"t","namespace":"n","stream":"s","floors":[1]}]}`))
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		st, err := decode("c", data)
		if err != nil {
			return
		}
		again, err := encode(st)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decode("c", again); err != nil {
			t.Fatalf("cannot read what was written: %v\n%s", err, again)
		}
	})
}

func writeFile(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
