//go:build chaos

package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"felix.dev/felix/broker/admin"
	"felix.dev/felix/broker/wire"
	"felix.dev/felix/client"
)

// The streams of every test. Limits are small, so that segments roll and are trimmed
// all the time.
const (
	streamLog   = "log"   // durable, keeps everything
	streamKept  = "kept"  // durable, keeps a MiB
	streamSoon  = "soon"  // durable, synced by interval: kill -9 loses nothing of it
	streamKeyed = "keyed" // durable, two shards
	streamMem   = "mem"   // memory: a kill loses its records, and none of its offsets
)

var streams = []struct {
	name   string
	shards uint32
	change func(*admin.StreamSpec)
}{
	{streamLog, 1, func(*admin.StreamSpec) {}},
	{streamKept, 1, func(s *admin.StreamSpec) { s.Retention.MaxBytes = 1 << 20 }},
	{streamSoon, 1, func(s *admin.StreamSpec) {
		s.Fsync = admin.Fsync{Mode: "Interval", Every: admin.Duration(50 * time.Millisecond)}
	}},
	{streamKeyed, 2, func(s *admin.StreamSpec) { s.Shards = 2 }},
	{streamMem, 1, func(s *admin.StreamSpec) { s.Durability = "Memory" }},
}

// load is publishers and readers that go on whatever becomes of the broker.
type load struct {
	t       *testing.T
	p       *process
	ledgers map[place]*ledger

	ctx        context.Context // ends when something is wrong, or with the test
	fail       context.CancelCauseFunc
	quit       chan struct{} // closed when publishers are to stop
	publishing sync.WaitGroup
	reading    sync.WaitGroup
	sources    atomic.Uint32
	// draining says that the broker refuses publishes because it shuts down. Whoever is
	// told stops, as it should; started begins anew.
	draining  atomic.Bool
	followers []*follower

	mu sync.Mutex
	// complete counts, for sources whose every record was acknowledged, how many those
	// are. Guarded by mu.
	complete map[place]map[uint32]uint64
}

// startLoad makes the streams and starts to publish and to read.
func startLoad(p *process, rng *rand.Rand) *load {
	p.t.Helper()
	l := &load{t: p.t, p: p, ledgers: map[place]*ledger{}, quit: make(chan struct{}), complete: map[place]map[uint32]uint64{}}
	ctx, cancel := context.WithCancelCause(p.t.Context())
	l.ctx, l.fail = ctx, cancel
	for _, s := range streams {
		p.create(s.name, s.change)
		for i := range s.shards {
			at := place{s.name, i}
			l.ledgers[at] = newLedger(at, s.name == streamMem)
			l.complete[at] = map[uint32]uint64{}
		}
	}
	l.follow(rng)
	for _, kind := range []struct {
		stream string
		how    client.PublisherConfig
		burst  int
		keys   bool
	}{
		{stream: streamLog, burst: 1},
		{stream: streamLog, burst: 1},
		{stream: streamLog, how: client.PublisherConfig{Linger: time.Millisecond}, burst: 48},
		{stream: streamLog, how: client.PublisherConfig{Unacked: true}, burst: 16},
		{stream: streamLog, how: client.PublisherConfig{Idempotent: true, MaxBatchRecords: 8}, burst: 32},
		{stream: streamKept, how: client.PublisherConfig{MaxBatchRecords: 5}, burst: 32},
		{stream: streamKept, how: client.PublisherConfig{Idempotent: true}, burst: 32},
		{stream: streamSoon, burst: 32},
		{stream: streamSoon, how: client.PublisherConfig{Idempotent: true}, burst: 16},
		{stream: streamKeyed, how: client.PublisherConfig{Idempotent: true, MaxBatchRecords: 4}, burst: 32, keys: true},
		{stream: streamMem, burst: 16},
		{stream: streamMem, how: client.PublisherConfig{Linger: time.Millisecond}, burst: 32},
	} {
		l.publish(kind.stream, kind.how, kind.burst, kind.keys, rand.New(rand.NewPCG(rng.Uint64(), 0)))
	}
	return l
}

// sent is a record on its way.
type sent struct {
	id      id
	ledger  *ledger
	pending *client.Pending
}

// publish runs one publisher of bursts.
func (l *load) publish(name string, how client.PublisherConfig, burst int, keys bool, rng *rand.Rand) {
	l.t.Helper()
	c := l.p.dial()
	pub, err := c.NewPublisher(client.Stream{Namespace: namespace, Name: name}, how)
	if err != nil {
		l.t.Fatal(err)
	}
	sources := [2]uint32{l.sources.Add(1), l.sources.Add(1)} // one for each shard: order is by shard
	l.publishing.Go(func() {
		var numbers [2]uint64
		pace := time.NewTicker(10 * time.Millisecond)
		defer pace.Stop()
		for {
			select {
			case <-l.quit:
				l.finish(name, sources, numbers, how)
				return
			case <-l.ctx.Done():
				return
			case <-pace.C:
			}
			if l.draining.Load() { // the broker has said so: there is no point in sending
				continue
			}
			var under []sent
			for range burst {
				var m client.Message
				shard := uint32(0)
				if keys {
					m.Keyed, m.Key = true, fmt.Append(nil, rng.IntN(100))
					shard = wire.ShardOf(m.Key, true, 2, wire.RoutingModulo)
				}
				numbers[shard]++
				s := sent{id: id{sources[shard], numbers[shard]}, ledger: l.ledgers[place{name, shard}]}
				m.Payload = s.id.payload(recordHead + rng.IntN(600))
				if s.pending, err = pub.Publish(l.ctx, m); err != nil {
					if !l.told(s, client.Receipt{}, err, how) {
						return
					}
					continue
				}
				under = append(under, s)
			}
			for _, s := range under {
				r, err := s.pending.Wait(l.ctx)
				if how.Unacked {
					continue // what it says is that the record was sent, or not
				}
				if !l.told(s, r, err, how) {
					return
				}
			}
		}
	})
}

// told enters what a publisher was told. It returns false when the load is over.
func (l *load) told(s sent, r client.Receipt, err error, how client.PublisherConfig) bool {
	switch {
	case l.ctx.Err() != nil:
		return false
	case err == nil && !r.HasOffset:
		err = fmt.Errorf("%s: %s was acknowledged without an offset", s.ledger.place, s.id)
	case err == nil:
		err = s.ledger.ack(s.id, r.Offset)
	case how.Idempotent:
		// It sends again by itself, for longer than any of these tests keeps the broker away.
		err = fmt.Errorf("%s: %s of an idempotent publisher: %w", s.ledger.place, s.id, err)
	case errors.Is(err, client.ErrOutcomeUnknown):
		err = s.ledger.settle(s.id, unknown)
	case errors.Is(err, client.ErrRetryable):
		if e, ok := errors.AsType[*client.Error](err); ok && e.Code == wire.CodeDraining {
			l.draining.Store(true)
		}
		err = s.ledger.settle(s.id, refused)
	default:
		if _, away := errors.AsType[*client.ConnectError](err); away {
			err = s.ledger.settle(s.id, refused)
		}
	}
	if err != nil {
		l.fail(err)
		return false
	}
	return true
}

// finish notes what a publisher that lost nothing has published.
func (l *load) finish(name string, sources [2]uint32, numbers [2]uint64, how client.PublisherConfig) {
	if !how.Idempotent {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for shard, n := range numbers {
		if n > 0 {
			l.complete[place{name, uint32(shard)}][sources[shard]] = n
		}
	}
}

// check fails the test if anybody has found a fault.
func (l *load) check() {
	l.t.Helper()
	if l.ctx.Err() != nil {
		l.t.Fatal(context.Cause(l.ctx))
	}
}

// quiesce lets the publishers end and the readers come to the end, and checks all that
// is known. The broker has to be there.
func (l *load) quiesce() {
	l.t.Helper()
	close(l.quit)
	l.wait("the publishers have their last answers", &l.publishing)
	l.check()
	for _, s := range streams {
		for i, shard := range l.p.shards(s.name) {
			at := place{s.name, uint32(i)}
			if end := l.ledgers[at].ackedEnd(); end > shard.NextOffset {
				l.t.Errorf("%s ends at %d, %d was acknowledged", at, shard.NextOffset, end-1)
			}
			for _, f := range l.followers {
				if f.at == at {
					f.target.Store(shard.NextOffset)
				}
			}
		}
	}
	l.p.until("the readers have read to the end", func() bool {
		for _, f := range l.followers {
			if f.next.Load() < f.target.Load() {
				return l.ctx.Err() != nil
			}
		}
		return true
	})
	l.check()
	for _, s := range streams {
		for i, shard := range l.p.shards(s.name) {
			at := place{s.name, uint32(i)}
			l.readBack(at, shard.OldestOffset, shard.NextOffset)
			complete := l.complete[at]
			if s.name == streamKept { // the followers may have missed what retention took
				complete = nil
			}
			if err := l.ledgers[at].inOrder(complete); err != nil {
				l.t.Error(err)
			}
			stored, acked, unknowns, refusals := l.ledgers[at].tally()
			l.t.Logf("%-8s %d records seen; acknowledged %d, unknown %d, refused %d", at, stored, acked, unknowns, refusals)
			if acked == 0 {
				l.t.Errorf("%s: nothing was acknowledged: the test shows nothing", at)
			}
		}
	}
	l.fail(nil)
	l.wait("the readers have ended", &l.reading)
}

// wait waits for a group as long as there is patience.
func (l *load) wait(what string, wg *sync.WaitGroup) {
	l.t.Helper()
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(patience):
		l.t.Fatalf("not within %s: %s", patience, what)
	}
}
