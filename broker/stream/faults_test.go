package stream

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"felix.dev/felix/broker/seglog"
	"felix.dev/felix/broker/vfs/faultfs"
	"felix.dev/felix/broker/wire"
)

// told is what the publishers of a shard were answered, by payload.
type told struct {
	mu      sync.Mutex
	offsets map[string]uint64
	unknown map[string]bool
	refused map[string]bool
}

func (a *told) publish(t *testing.T, s *Shard, payload string, done func()) {
	s.Publish(&Publish{Records: records(payload), Done: func(r Result) {
		defer done()
		a.mu.Lock()
		defer a.mu.Unlock()
		if r.Err == nil {
			a.offsets[payload] = r.Offset
			return
		}
		e, ok := errors.AsType[*Error](r.Err)
		switch {
		case !ok:
			t.Errorf("%s: %v", payload, r.Err)
		case e.Retry == wire.RetryOutcomeUnknown:
			a.unknown[payload] = true
		default:
			a.refused[payload] = true
		}
	}})
}

// What publishers are told about a disk that fills up and fails is true when the log
// is opened again: what was acknowledged is at its offset, what was refused is
// nowhere, and only what has an unknown outcome may be there or not (B93).
func TestWhatPublishersAreToldIsTrue(t *testing.T) {
	first := rand.Uint64()
	for i := range uint64(40) {
		if !t.Run("", func(t *testing.T) { runFaults(t, first+i) }) {
			t.Fatalf("seed %d", first+i)
		}
	}
}

func runFaults(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0))
	fs := faultfs.New(seed)
	open := func() (*Shard, *seglog.Log) {
		var log *seglog.Log
		s, err := Open(Config{TailBytes: 8 << 10}, func(h Hooks) (Log, error) {
			l, _, err := seglog.Open(seglog.Config{
				FS: fs, Dir: "log", SegmentBytes: 8 << 10, Committed: h.Committed,
				OnRecover: h.OnRecover, RestoreState: h.RestoreState, SnapshotState: h.SnapshotState,
			})
			log = l
			return Segments(l), err
		})
		if err != nil {
			t.Fatal(err)
		}
		return s, log
	}
	s, log := open()
	a := &told{offsets: map[string]uint64{}, unknown: map[string]bool{}, refused: map[string]bool{}}
	var all sync.WaitGroup
	for i := range 200 {
		switch rng.IntN(60) {
		case 0:
			fs.SetSpace(int64(rng.IntN(30 << 10)))
		case 1:
			fs.SetSpace(1 << 30)
		case 2:
			fs.SetReadOnly(rng.IntN(2) == 0)
		case 3:
			op := []faultfs.Op{faultfs.OpDatasync, faultfs.OpWrite}[rng.IntN(2)]
			fs.Inject(faultfs.Fault{Op: op, Bytes: rng.IntN(600)})
		}
		all.Add(1)
		a.publish(t, s, fmt.Sprintf("%d %s", i, strings.Repeat("x", rng.IntN(500))), all.Done)
		if rng.IntN(3) == 0 {
			all.Wait()
		}
	}
	all.Wait()
	if err := s.Close(context.Background(), EndShutdown); err != nil {
		t.Error(err)
	}
	_ = log.Close() // it may be poisoned
	fs.Heal()
	fs.SetSpace(1 << 30)
	fs.SetReadOnly(false)

	s, log = open()
	o := offered(1)
	o.Start = earliest
	sub := subscribe(t, s, o)
	there, st := drain(t, sub)
	if st != Idle {
		t.Errorf("status %v, end %+v", st, sub.End())
	}
	found := make(map[string]uint64)
	for _, e := range there {
		if was, ok := found[e.Payload]; ok {
			t.Errorf("%.8q is there twice, at %d and %d", e.Payload, was, e.Offset)
		}
		if found[e.Payload] = e.Offset; a.refused[e.Payload] {
			t.Errorf("%.8q was refused and is at %d", e.Payload, e.Offset)
		}
	}
	for payload, offset := range a.offsets {
		if at, ok := found[payload]; !ok || at != offset {
			t.Errorf("%.8q was acknowledged at %d, it is at %d (%v)", payload, offset, at, ok)
		}
	}
	if len(a.offsets)+len(a.unknown)+len(a.refused) != 200 {
		t.Errorf("%d acknowledged, %d unknown, %d refused: not all 200", len(a.offsets), len(a.unknown), len(a.refused))
	}
	sub.Close()
	if err := errors.Join(s.Close(context.Background(), EndShutdown), log.Close()); err != nil {
		t.Error(err)
	}
}
