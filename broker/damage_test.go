package broker

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"felix.dev/felix/broker/admin"
	"felix.dev/felix/broker/catalog"
	"felix.dev/felix/client"
)

func slogOf(l *logLines) *slog.Logger { return slog.New(l) }

// damaged is a stopped broker with streams "good" and "bad" of 100 records each.
func damaged(t *testing.T, damage func(bad, good string)) *running {
	t.Helper()
	dir := t.TempDir()
	r := run(t, dir)
	bad := r.create(admin.StreamSpec{Name: named("bad")})
	good := r.create(admin.StreamSpec{Name: named("good")})
	c := r.client()
	for _, s := range []string{"good", "bad"} {
		r.publish(c, s, 0, 100)
	}
	_ = c.Close()
	r.stop()
	of := func(st *admin.Stream) string {
		return filepath.Join(dir, streamsName, devTenant, "default", st.Spec.Stream, st.Incarnation, "0")
	}
	damage(of(&bad), of(&good))
	return run(t, dir)
}

func segmentIn(t *testing.T, shard string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(shard, "*.log"))
	if err != nil || len(names) != 1 {
		t.Fatalf("segments %v, %v", names, err)
	}
	return names[0]
}

func flip(t *testing.T, path string, at int) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[at] ^= 0xff
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Acknowledged data that is damaged: what is before it can be read, nothing is
// appended behind it, and the other streams serve.
func TestDamagedLog(t *testing.T) {
	r := damaged(t, func(bad, _ string) { flip(t, segmentIn(t, bad), 2000) })
	c := r.client()
	r.publish(c, "good", 100, 1)
	r.read(c, "good", client.Earliest(), 0, 101)

	_, err := c.Publish(r.ctx(), streamOf("bad"), client.Message{Payload: []byte("x")})
	if _, ok := errors.AsType[*client.Error](err); !ok {
		t.Errorf("publish: %v", err)
	}
	r.read(c, "bad", client.Earliest(), 0, 10)
	st, err := r.admin().Stream(r.ctx(), named("bad"))
	if err != nil || !strings.Contains(st.Shards[0].Error, "damaged") {
		t.Errorf("shown as %+v, %v", st, err)
	}
	ready, err := r.admin().Readiness(r.ctx())
	if err != nil || !ready.Ready || !strings.Contains(ready.Checks[1].Message, "dev/default/bad") {
		t.Errorf("readiness %+v, %v", ready, err)
	}
}

// A log that cannot be opened at all: its stream is refused with the reason.
func TestUnreadableLog(t *testing.T) {
	r := damaged(t, func(bad, good string) { // a segment that belongs to another log
		b, err := os.ReadFile(segmentIn(t, good))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(segmentIn(t, bad), b, 0o600); err != nil {
			t.Fatal(err)
		}
	})
	c := r.client()
	r.publish(c, "good", 100, 1)
	_, err := c.Publish(r.ctx(), streamOf("bad"), client.Message{Payload: []byte("x")})
	if e, ok := errors.AsType[*client.Error](err); !ok || e.Code.String() != "shard_unavailable" {
		t.Errorf("publish: %v", err)
	}
	st, err := r.admin().Stream(r.ctx(), named("bad"))
	if err != nil || st.Shards[0].Error == "" {
		t.Errorf("shown as %+v, %v", st, err)
	}
	// It can be deleted all the same; its successor starts beyond whatever it held.
	if err := r.admin().DeleteStream(r.ctx(), named("bad")); err != nil {
		t.Fatal(err)
	}
	if st := r.create(admin.StreamSpec{Name: named("bad")}); st.Shards[0].NextOffset < 100 {
		t.Errorf("successor starts at %d", st.Shards[0].NextOffset)
	}
}

// B58: a damaged catalog is an error that says so, and nothing is removed because of it.
func TestDamagedCatalog(t *testing.T) {
	for name, tt := range map[string]struct {
		damage func(path string) error
		is     func(error) bool
	}{
		"damaged": {
			func(path string) error { return os.WriteFile(path, []byte("{}"), 0o600) },
			func(err error) bool { _, ok := errors.AsType[*catalog.CorruptError](err); return ok },
		},
		"missing": {os.Remove, func(err error) bool { return errors.Is(err, catalog.ErrMissing) }},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			r := run(t, dir)
			c := r.client()
			r.publish(c, devStream, 0, 10)
			_ = c.Close()
			r.stop()
			path := filepath.Join(dir, catalogName)
			saved, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := tt.damage(path); err != nil {
				t.Fatal(err)
			}
			if _, err := Start(t.Context(), devConfig(dir)); !tt.is(err) {
				t.Fatalf("got %v", err)
			}
			if err := os.WriteFile(path, saved, 0o600); err != nil {
				t.Fatal(err)
			}
			r = run(t, dir)
			r.read(r.client(), devStream, client.Earliest(), 0, 10)
		})
	}
}
