package broker

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"felix.dev/felix/broker/admin"
	"felix.dev/felix/broker/catalog"
	"felix.dev/felix/broker/vfs"
	"felix.dev/felix/client"
)

// B88: a create that is tried again is the same success.
func TestCreateIsIdempotent(t *testing.T) {
	r := run(t, t.TempDir())
	spec := admin.StreamSpec{Name: named("s"), Shards: 2}
	first, created, err := r.admin().CreateStream(r.ctx(), spec, "req-1")
	if err != nil || !created || len(first.Shards) != 2 {
		t.Fatalf("%+v, %v, %v", first, created, err)
	}
	again, created, err := r.admin().CreateStream(r.ctx(), spec, "req-1")
	if err != nil || created || again.Incarnation != first.Incarnation {
		t.Errorf("%+v, %v, %v", again, created, err)
	}
	spec.Shards = 3
	if _, _, err := r.admin().CreateStream(r.ctx(), spec, "req-2"); !errors.Is(err, &admin.Error{Code: admin.CodeAlreadyExists}) {
		t.Errorf("other settings: %v", err)
	}
}

// B17: what was read of a deleted stream says nothing about the one that was created
// under its name afterwards.
func TestDeletedAndRecreated(t *testing.T) {
	for _, durability := range []string{"Durable", "Memory"} {
		t.Run(durability, func(t *testing.T) {
			r := run(t, t.TempDir())
			old := r.create(admin.StreamSpec{Name: named("s"), Durability: durability})
			c := r.client()
			r.publish(c, "s", 0, 50)
			dir := filepath.Join(r.dir, streamsName, devTenant, "default", "s", old.Incarnation)
			sub, err := c.Subscribe(r.ctx(), streamOf("s"), client.SubscribeConfig{Start: client.Earliest()})
			if err != nil {
				t.Fatal(err)
			}
			if err := r.admin().DeleteStream(r.ctx(), named("s")); err != nil {
				t.Fatal(err)
			}
			// B21: its readers get everything, then the end.
			r.expect(sub, 0, 50)
			if _, err := sub.Next(r.ctx()); !errors.Is(err, client.ErrClosed) && err == nil {
				t.Error("the subscription goes on")
			}
			if err := r.admin().DeleteStream(r.ctx(), named("s")); !errors.Is(err, &admin.Error{Code: admin.CodeNotFound}) {
				t.Errorf("deleted twice: %v", err)
			}
			eventually(t, "its data is gone", func() bool { _, err := os.Stat(dir); return os.IsNotExist(err) })

			fresh := r.create(admin.StreamSpec{Name: named("s"), Durability: durability})
			first := fresh.Shards[0].NextOffset
			if first <= 50 || fresh.Incarnation == old.Incarnation {
				t.Fatalf("starts at %d, incarnation %s", first, fresh.Incarnation)
			}
			r.publish(c, "s", int(first), 100)
			for _, at := range []uint64{0, 49, 50, first - 1} {
				_, err := c.Subscribe(r.ctx(), streamOf("s"), client.SubscribeConfig{Start: client.At(at)})
				cursor, ok := errors.AsType[*client.CursorError](err)
				if !ok || cursor.Reason != "too_old" || cursor.Available != first {
					t.Errorf("resume at %d: %v", at, err)
				}
			}
			r.read(c, "s", client.At(first), int(first), 100)
		})
	}
}

// A memory stream's offsets go on after a restart, so that an old cursor is too old
// and never misread.
func TestMemoryOffsetsAfterARestart(t *testing.T) {
	dir := t.TempDir()
	r := run(t, dir)
	r.create(admin.StreamSpec{Name: named("m"), Durability: "Memory"})
	c := r.client()
	r.publish(c, "m", 0, 10)
	_ = c.Close()
	r.stop()

	r = run(t, dir)
	st, err := r.admin().Stream(r.ctx(), named("m"))
	if err != nil {
		t.Fatal(err)
	}
	first := st.Shards[0].NextOffset
	if first < 10 {
		t.Fatalf("starts at %d", first)
	}
	c = r.client()
	r.publish(c, "m", int(first), 1)
	_, err = c.Subscribe(r.ctx(), streamOf("m"), client.SubscribeConfig{Start: client.At(10)})
	if cursor, ok := errors.AsType[*client.CursorError](err); !ok || cursor.Reason != "too_old" {
		t.Errorf("old cursor: %v", err)
	}
}

func TestUpdateStream(t *testing.T) {
	r := run(t, t.TempDir())
	r.create(admin.StreamSpec{Name: named("s")})
	c := r.client()
	r.publish(c, "s", 0, 5)
	sub, err := c.Subscribe(r.ctx(), streamOf("s"), client.SubscribeConfig{Start: client.Earliest()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sub.Close() }()
	r.expect(sub, 0, 5)

	// More shards leave the others alone.
	st, err := r.admin().UpdateStream(r.ctx(), named("s"), admin.StreamChange{Shards: new(uint32(3))})
	if err != nil || len(st.Shards) != 3 || st.Shards[0].NextOffset != 5 || st.Shards[0].Subscriptions != 1 {
		t.Fatalf("%+v, %v", st, err)
	}
	r.publish(c, "s", 5, 1)
	r.expect(sub, 5, 1)
	if shards, err := c.Shards(r.ctx(), streamOf("s")); err != nil || shards.Count != 3 {
		t.Errorf("%+v, %v", shards, err)
	}

	// Other settings open the stream anew; readers resume where they were.
	st, err = r.admin().UpdateStream(r.ctx(), named("s"), admin.StreamChange{Queue: &admin.Queue{Entries: 7, OnFull: "CatchUp"}})
	if err != nil || st.Spec.Queue.Entries != 7 || st.Shards[0].NextOffset != 6 {
		t.Fatalf("%+v, %v", st, err)
	}
	r.publish(c, "s", 6, 3)
	r.expect(sub, 6, 3)
	subs, err := r.admin().Subscriptions(r.ctx(), admin.SubscriptionQuery{})
	if err != nil || len(subs.Subscriptions) != 1 || subs.Subscriptions[0].OnFull != "CatchUp" || subs.Subscriptions[0].Principal != "dev/developer" {
		t.Fatalf("%+v, %v", subs, err)
	}
	// And an operator can end one reader: it comes back by itself.
	if err := r.admin().EndSubscription(r.ctx(), subs.Subscriptions[0].ID); err != nil {
		t.Fatal(err)
	}
	r.publish(c, "s", 9, 1)
	r.expect(sub, 9, 1)
	if err := r.admin().EndSubscription(r.ctx(), 1<<40); !errors.Is(err, &admin.Error{Code: admin.CodeNotFound}) {
		t.Errorf("a subscription that is not there: %v", err)
	}

	if _, err := r.admin().UpdateStream(r.ctx(), named("s"), admin.StreamChange{Shards: new(uint32(1))}); err == nil {
		t.Error("shards were taken away")
	}
	r.create(admin.StreamSpec{Name: named("m"), Durability: "Memory"})
	if _, err := r.admin().UpdateStream(r.ctx(), named("m"), admin.StreamChange{TailBytes: new(int64(1 << 20))}); err == nil {
		t.Error("a memory stream would have lost its records")
	}
	if st, err := r.admin().UpdateStream(r.ctx(), named("m"), admin.StreamChange{Shards: new(uint32(2))}); err != nil || len(st.Shards) != 2 {
		t.Errorf("more shards in memory: %+v, %v", st, err)
	}
}

func TestRefusedSpecs(t *testing.T) {
	r := run(t, t.TempDir())
	for _, spec := range []admin.StreamSpec{
		{Name: named("bad/name")},
		{Name: named("s"), Durability: "Quorum"},
		{Name: named("s"), Durability: "Memory", Retention: admin.Retention{MaxBytes: 1 << 20, MaxAge: Duration(3600e9)}},
		{Name: named("s"), Durability: "Memory", Queue: admin.Queue{OnFull: "CatchUp"}},
	} {
		if _, _, err := r.admin().CreateStream(r.ctx(), spec, ""); !errors.Is(err, &admin.Error{Code: admin.CodeInvalidRequest}) {
			t.Errorf("%+v: %v", spec, err)
		}
	}
}

// What the catalog does not know is left alone, unless it was deleted on purpose.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	known := catalog.Entry{
		Spec:        catalog.StreamSpec{Name: catalog.Name{Tenant: "t", Namespace: "n", Stream: "s"}, Shards: 1},
		Incarnation: strings.Repeat("a", 32),
	}
	orphan, deleted := known, known
	orphan.Incarnation, deleted.Incarnation = strings.Repeat("b", 32), strings.Repeat("c", 32)
	for _, e := range []*catalog.Entry{&known, &orphan, &deleted} {
		if err := os.MkdirAll(shardDir(dir, e, 0), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range []*catalog.Entry{&known, &deleted} { // one deletion did not come to the catalog
		if err := os.WriteFile(filepath.Join(incarnationDir(dir, e), deletedName), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	lines := newLogLines()
	if err := sweep(vfs.OS, dir, []catalog.Entry{known}, slogOf(lines)); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		shardDir(dir, &known, 0): true, filepath.Join(incarnationDir(dir, &known), deletedName): false,
		shardDir(dir, &orphan, 0): true, incarnationDir(dir, &deleted): false,
	} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s: %v", path, err)
		}
	}
	if len(lines.all()) != 1 || !strings.Contains(lines.all()[0], orphan.Incarnation) {
		t.Errorf("logged %q", lines.all())
	}
}
