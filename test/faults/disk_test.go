package faults_test

import (
	"errors"
	"fmt"
	"maps"
	"testing"

	"golang.org/x/sync/errgroup"

	"felix.dev/felix/broker/seglog"
	"felix.dev/felix/broker/vfs/faultfs"
	"felix.dev/felix/broker/wire"
	"felix.dev/felix/client"
)

// TestPowerCutKeepsWhatWasAcknowledged is B48: whatever of the un-synced bytes and
// names is lost with the power, every record that was acknowledged before is in the
// log that is left, where it was said to be.
func TestPowerCutKeepsWhatWasAcknowledged(t *testing.T) {
	t.Parallel()
	rng := seeded(t)
	fs := faultfs.New(rng.Uint64())
	fs.SetWriteback(0.2)
	k := startStack(t, fs)
	c := k.node.dial()
	ctx := bounded(t)
	rounds := scaled(20, 6)
	acked := map[uint64]string{} // offset to record
	for round := range rounds {
		// Several publishers, and the power goes while they are at it.
		image := make(chan *faultfs.FS, 1)
		policy := []faultfs.Policy{faultfs.Drop, faultfs.Random}[round%2]
		before := maps.Clone(acked)
		var g errgroup.Group
		results := make([][]published, 4)
		for source := range uint32(len(results)) {
			p := publisher(t, c, stackStream, func(c *client.PublisherConfig) { c.MaxBatchRecords = 7 })
			g.Go(func() (err error) {
				results[source], err = tryPublish(ctx, p, source, round*50, 50, 200+int(source)*100)
				return errors.Join(err, p.Close(ctx))
			})
		}
		seed := rng.Uint64()
		g.Go(func() error {
			image <- fs.CrashImage(policy, seed)
			return nil
		})
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
		for source, r := range results {
			for _, a := range r {
				acked[a.offset] = fmt.Sprint(source, "/", a.number)
			}
		}
		checkLog(t, <-image, before)
		checkLog(t, fs.CrashImage(policy, rng.Uint64()), acked)
	}
	// And over the network, from what is left in the worst case.
	after := startStack(t, fs.CrashImage(faultfs.Drop, 0))
	r := newReader(subscribe(t, after.node.dial(), stackStream, client.SubscribeConfig{Start: client.Earliest()}))
	r.check = func(e *client.Event, source uint32, number uint64) error {
		if got := fmt.Sprint(source, "/", number); acked[e.Offset] != got {
			return fmt.Errorf("offset %d is %s, %q was acknowledged there", e.Offset, got, acked[e.Offset])
		}
		return nil
	}
	if err := r.until(ctx, uint64(len(acked))); err != nil {
		t.Fatal(err)
	}
}

// checkLog opens a log as it was left and wants records in it.
func checkLog(t *testing.T, fs *faultfs.FS, want map[uint64]string) {
	t.Helper()
	report, err := seglog.Inspect(fs, stackDir)
	if err != nil || report.Verdict == seglog.VerdictRefused {
		t.Fatalf("inspect: %+v, %v", report.Problem, err)
	}
	l, recovery, err := seglog.Open(logConfig(fs))
	if err != nil || recovery.ReadOnly != nil {
		t.Fatalf("reopen: %v, %v", err, recovery.ReadOnly)
	}
	defer l.Close()
	got := map[uint64]string{}
	for at := l.Oldest(); at < l.Next(); {
		page, err := l.Read(at, l.Next(), 1<<20, nil)
		if err != nil {
			t.Fatal(err)
		}
		for frames := page.Frames; len(frames) > 0; {
			info, err := wire.PeekOffsetFrame(frames)
			if err != nil {
				t.Fatal(err)
			}
			events, err := wire.DecodeEvents(wire.FlagEvents|wire.FlagEventOffsets, frames[wire.HeaderLen:info.Size])
			if err != nil {
				t.Fatal(err)
			}
			for i, e := range events.Each() {
				source, number, err := parseRecord(e.Payload)
				if err != nil {
					t.Fatal(err)
				}
				got[events.Base+uint64(i)] = fmt.Sprint(source, "/", number)
			}
			frames = frames[info.Size:]
		}
		at = page.Next
	}
	for offset, record := range want {
		if got[offset] != record {
			t.Fatalf("offset %d holds %q, %s was acknowledged there (the log goes to %d)", offset, got[offset], record, l.Next())
		}
	}
}

// publishUntil publishes single records until what happens to one satisfies stop, and
// returns what was acknowledged and the last outcome.
func publishUntil(t *testing.T, p *client.Publisher, number *uint64, stop func(error) bool) (acked []published, last error) {
	t.Helper()
	ctx := bounded(t)
	for {
		pending, err := p.Publish(ctx, client.Message{Payload: record(1, *number, 1<<10)})
		if err != nil {
			t.Fatal(err)
		}
		r, err := pending.Wait(ctx)
		if ctx.Err() != nil {
			t.Fatal("nothing happens any more")
		}
		if err == nil {
			acked = append(acked, published{r.Offset, *number})
		}
		*number++
		if stop(err) {
			return acked, err
		}
	}
}

// TestDiskThatRefusesWrites is B93, and the full disk of the same kind: publishes are
// refused with a typed error, readers go on, and once the disk takes writes again so
// does the log, at the next offset. A disk that became read-only in the middle of a
// flush may need the log reopened; the offsets go on all the same.
func TestDiskThatRefusesWrites(t *testing.T) {
	t.Parallel()
	for _, fault := range []struct {
		name  string
		begin func(*faultfs.FS)
	}{
		{"read-only", func(fs *faultfs.FS) { fs.SetReadOnly(true) }},
		{"full", func(fs *faultfs.FS) { fs.SetSpace(0) }},
	} {
		t.Run(fault.name, func(t *testing.T) {
			t.Parallel()
			fs := faultfs.New(1)
			k := startStack(t, fs)
			ctx := bounded(t)
			seen := newWitness()
			number, end, restarts := uint64(0), uint64(0), 0
			note := func(acked []published) {
				for _, a := range acked {
					if a.offset < end {
						t.Fatalf("offset %d was handed out again, the log was at %d", a.offset, end)
					}
					end = a.offset + 1
					if err := seen.saw(a.offset, 1, a.number); err != nil {
						t.Fatal(err)
					}
				}
			}
			for round := range 5 {
				p := publisher(t, k.node.dial(), stackStream)
				acked, _ := publishUntil(t, p, &number, func(error) bool { return number%50 == 49 })
				note(acked)
				fault.begin(fs)
				acked, err := publishUntil(t, p, &number, func(err error) bool { return err != nil })
				note(acked)
				e, ok := errors.AsType[*client.Error](err)
				if !ok || (e.Code != wire.CodeOverloaded || e.Retry != wire.RetryAfter || e.Reason != "storage") && e.Code != wire.CodeStorage {
					t.Fatalf("round %d: the publisher was told %v", round, err)
				}
				t.Logf("round %d: %v", round, err)
				// Readers go on, from the ring and from the log.
				r := newReader(subscribe(t, k.node.dial(), stackStream, client.SubscribeConfig{Start: client.Earliest()}))
				r.check = seen.check
				if err := r.until(ctx, end); err != nil {
					t.Fatalf("round %d: %v", round, err)
				}
				fs.Heal()
				if e.Code == wire.CodeStorage { // nobody knows what is on the disk: only a new start can tell
					restarts++
					k.restart()
					p = publisher(t, k.node.dial(), stackStream)
				}
				acked, err = publishUntil(t, p, &number, func(error) bool { return true })
				if err != nil {
					t.Fatalf("round %d: the disk is well again, and the publisher is told %v", round, err)
				}
				note(acked)
			}
			if fault.name == "full" && restarts > 0 {
				t.Errorf("a full disk took %d restarts", restarts)
			}
		})
	}
}

// TestReaderStopsAtTheFirstUncommittedRecord is B91 as far as one broker meets it: what
// is written and not yet synced is read by nobody, also not by who asks for the end, and
// then comes in order.
func TestReaderStopsAtTheFirstUncommittedRecord(t *testing.T) {
	t.Parallel()
	fs := faultfs.New(1)
	k := startStack(t, fs)
	ctx := bounded(t)
	p := publisher(t, k.node.dial(), stackStream, single)
	publish(t, p, 1, 0, 10, 100)
	c := k.node.dial()
	early := newReader(subscribe(t, c, stackStream, client.SubscribeConfig{Start: client.Earliest()}))
	early.check = numbered(0)
	syncing, release := fs.Hold(faultfs.OpDatasync, nil)
	defer release()
	var pending []*client.Pending
	for i := range uint64(50) {
		one, err := p.Publish(ctx, client.Message{Payload: record(1, 10+i, 100)})
		if err != nil {
			t.Fatal(err)
		}
		pending = append(pending, one)
	}
	<-syncing
	if err := early.until(ctx, 10); err != nil {
		t.Fatal(err)
	}
	late := newReader(subscribe(t, c, stackStream, client.SubscribeConfig{}))
	late.check = numbered(0)
	if late.next != 10 {
		t.Errorf("the readable end is %d while nothing above 10 is committed", late.next)
	}
	if _, err := c.Subscribe(ctx, stackStream, client.SubscribeConfig{Start: client.At(11)}); err == nil {
		t.Error("a reader was let in beyond the committed end")
	}
	for i, one := range pending {
		select {
		case <-one.Done():
			t.Errorf("record %d is answered before it is synced", 10+i)
		default:
		}
	}
	release()
	for _, r := range []*reader{early, late} {
		if err := r.until(ctx, 60); err != nil {
			t.Error(err)
		}
	}
}

// TestFailedSyncPoisons holds what section 6 says about a sync that fails: nothing is
// acknowledged from then on, what was acknowledged stays readable, and a restart goes
// on behind it.
func TestFailedSyncPoisons(t *testing.T) {
	t.Parallel()
	fs := faultfs.New(1)
	k := startStack(t, fs)
	p := publisher(t, k.node.dial(), stackStream)
	number := uint64(0)
	acked, _ := publishUntil(t, p, &number, func(error) bool { return number == 100 })
	fs.Inject(faultfs.Fault{Op: faultfs.OpDatasync})
	_, err := publishUntil(t, p, &number, func(err error) bool { return err != nil })
	if e, ok := errors.AsType[*client.Error](err); !ok || e.Code != wire.CodeStorage || e.Retry != wire.RetryOutcomeUnknown {
		t.Errorf("the publish whose sync failed was told %v", err)
	}
	for range 3 { // the disk is well again, but who knows what is on it
		_, err = publishUntil(t, p, &number, func(error) bool { return true })
		if e, ok := errors.AsType[*client.Error](err); !ok || e.Code != wire.CodeStorage {
			t.Errorf("a publish afterwards was told %v", err)
		}
	}
	ctx := bounded(t)
	r := newReader(subscribe(t, k.node.dial(), stackStream, client.SubscribeConfig{Start: client.Earliest()}))
	r.check = numbered(0)
	if err := r.until(ctx, uint64(len(acked))); err != nil {
		t.Error(err)
	}
	k.restart()
	again, err := publishUntil(t, publisher(t, k.node.dial(), stackStream), &number, func(error) bool { return true })
	if err != nil || again[0].offset < uint64(len(acked)) {
		t.Errorf("after a restart: %v, %v", again, err)
	}
}
