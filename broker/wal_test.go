package broker

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"felix.dev/felix/broker/admin"
	"felix.dev/felix/broker/wal"
	"felix.dev/felix/client"
)

// After an orderly end the write-ahead log holds nothing of durable streams, so that a
// data directory without one, as earlier releases leave it, is as good as one with it.
func TestDataWithoutWriteAheadLog(t *testing.T) {
	dir := t.TempDir()
	r := run(t, dir)
	r.create(admin.StreamSpec{Name: named("a")})
	r.create(admin.StreamSpec{Name: named("b")})
	for round := range 2 {
		with, before := round == 0, 20*round
		c := r.client()
		for n := range 20 { // in turn: they share the write-ahead log
			r.publish(c, "a", before+n, 1)
			r.publish(c, "b", before+n, 1)
		}
		if st := r.broker.wal.Stats(); st.Commits == 0 {
			t.Error("nothing went to the write-ahead log")
		}
		_ = c.Close()
		r.stop()
		path := filepath.Join(dir, walName)
		w, recovery, err := wal.Open(wal.Config{Dir: path})
		if err != nil {
			t.Fatal(err)
		}
		if len(recovery.Journals) != 0 {
			t.Errorf("the write-ahead log holds %v", recovery.Journals)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		if !with {
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
		}
		r = run(t, dir)
		c = r.client()
		r.read(c, "a", client.Earliest(), 0, before+20)
		r.read(c, "b", client.Earliest(), 0, before+20)
		_ = c.Close()
	}
}

// A write-ahead log that is damaged keeps the broker from starting, and it says what
// can be done.
func TestDamagedWriteAheadLog(t *testing.T) {
	dir := t.TempDir()
	r := run(t, dir)
	r.stop()
	path := filepath.Join(dir, walName, "00000000000000000001.wal")
	flip(t, path, 10)
	cfg := r.broker.cfg
	cfg.Registry = nil // that one is the first broker's
	_, err := Start(context.Background(), cfg)
	if _, ok := errors.AsType[*wal.CorruptionError](err); !ok || !strings.Contains(err.Error(), "moved away") {
		t.Fatalf("start: %v", err)
	}
	if err := os.RemoveAll(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	run(t, dir)
}
