package client

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"felix.dev/felix/broker/wire"
)

// dryPublisher has a lane without a goroutine: the test is its writer and its broker.
func dryPublisher(cfg PublisherConfig) (*Publisher, *lane) {
	full := (&Config{Tenant: "t1"}).withDefaults()
	p := &Publisher{
		client: &Client{cfg: full, log: full.Log}, cfg: cfg.withDefaults(), stream: demo,
		tenant: []byte("t1"), namespace: []byte(demo.Namespace), name: []byte(demo.Name),
	}
	p.life, p.giveUp = context.WithCancel(context.Background())
	p.budget = budget{maxBytes: p.cfg.MaxInflightBytes, maxRecords: p.cfg.MaxInflight}
	l := newLane(p, 0)
	p.lanes = []*lane{l}
	return p, l
}

func (p *Publisher) stopDry() {
	p.giveUp()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.expiry != nil {
		p.expiry.Stop()
	}
}

// taken decodes what take has encoded.
func taken(t *testing.T, l *lane, now time.Time) []string {
	t.Helper()
	var got []string
	out := l.take(nil, now)
	for len(out) > 0 {
		h, err := wire.ParseHeader(out)
		if err != nil {
			t.Fatal(err)
		}
		frame := out[wire.HeaderLen : wire.HeaderLen+int(h.Length)]
		out = out[wire.HeaderLen+int(h.Length):]
		p, err := wire.DecodePublish(h.Flags, frame)
		if err != nil {
			t.Fatal(err)
		}
		line := fmt.Sprintf("%d:", p.RequestID)
		if p.Idempotent {
			line = fmt.Sprintf("%d/%d:", p.RequestID, p.Sequence)
		}
		if p.Keyed {
			line += fmt.Sprintf("[%s]", p.Key)
		}
		for _, r := range p.Records.All() {
			line += " " + string(r)
		}
		got = append(got, line)
	}
	return got
}

func put(t *testing.T, p *Publisher, records ...string) []*Pending {
	t.Helper()
	var pendings []*Pending
	for _, r := range records {
		pending, err := p.Publish(t.Context(), Message{Payload: []byte(r)})
		if err != nil {
			t.Fatal(err)
		}
		pendings = append(pendings, pending)
	}
	return pendings
}

func TestLaneBatches(t *testing.T) {
	now := time.Now()
	tests := []struct {
		name    string
		cfg     PublisherConfig
		records []string
		after   time.Duration
		want    []string
	}{
		{"nothing", PublisherConfig{}, nil, 0, nil},
		{"all that waits is one batch", PublisherConfig{}, []string{"a", "b", "c"}, 0, []string{"1: a b c"}},
		{"by records", PublisherConfig{MaxBatchRecords: 2}, []string{"a", "b", "c"}, 0, []string{"1: a b", "2: c"}},
		{"by bytes", PublisherConfig{MaxBatchBytes: 12}, []string{"aa", "bb", "cc"}, 0, []string{"1: aa bb", "2: cc"}},
		{"a large one goes alone", PublisherConfig{MaxBatchBytes: 12}, []string{"a", "0123456789abcdef", "b"}, 0, []string{"1: a", "2: 0123456789abcdef", "3: b"}},
		{"lingers", PublisherConfig{Linger: time.Minute}, []string{"a"}, 0, nil},
		{"has lingered", PublisherConfig{Linger: time.Minute}, []string{"a", "b"}, 2 * time.Minute, []string{"1: a b"}},
		{"only what is full", PublisherConfig{Linger: time.Minute, MaxBatchRecords: 2}, []string{"a", "b", "c"}, 0, []string{"1: a b"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, l := dryPublisher(tt.cfg)
			defer p.stopDry()
			put(t, p, tt.records...)
			if diff := cmp.Diff(tt.want, taken(t, l, now.Add(tt.after))); diff != "" {
				t.Errorf("sent (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLaneAnswers(t *testing.T) {
	p, l := dryPublisher(PublisherConfig{MaxBatchRecords: 1})
	defer p.stopDry()
	pendings := put(t, p, "a", "b", "c", "d")
	taken(t, l, time.Now())
	settle := func(a answer) {
		t.Helper()
		if err := l.settle(a); err != nil {
			t.Errorf("answer %+v: %v", a, err)
		}
	}
	settle(answer{id: 3, offset: 30, hasOffset: true})
	settle(answer{id: 1, failed: &Error{Retry: wire.RetryFatal}})
	settle(answer{id: 4})
	if err := l.settle(answer{id: 3}); err == nil {
		t.Error("a second answer was taken")
	}
	if err := l.settle(answer{id: 9}); err == nil {
		t.Error("an answer to nothing was taken")
	}
	var got []string
	for _, pending := range pendings {
		select {
		case <-pending.Done():
			r, err := pending.Wait(t.Context())
			got = append(got, fmt.Sprintf("%d %v %v", r.Offset, r.HasOffset, err != nil))
		default:
			got = append(got, "open")
		}
	}
	if diff := cmp.Diff([]string{"0 false true", "open", "30 true false", "0 false false"}, got); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	if l.base != 2 || len(l.queue) != 3 || l.inflight != 1 {
		t.Errorf("base %d, %d in the queue, %d in flight; want 2, 3, 1", l.base, len(l.queue), l.inflight)
	}
	settle(answer{id: 2})
	if len(l.queue) != 0 || l.inflight != 0 || p.budget.bytes != 0 || p.budget.records != 0 {
		t.Errorf("left over: %d in the queue, %d in flight, budget %+v", len(l.queue), l.inflight, p.budget)
	}
}

func TestLaneIdempotentWindow(t *testing.T) {
	p, l := dryPublisher(PublisherConfig{Idempotent: true, MaxBatchRecords: 1})
	defer p.stopDry()
	for range 100 {
		put(t, p, "x")
	}
	if got := taken(t, l, time.Now()); got != nil {
		t.Errorf("sent without a producer id: %v", got)
	}
	l.hasProducer = true
	if n := len(taken(t, l, time.Now())); n != maxIdempotent {
		t.Errorf("%d batches are in flight, want %d", n, maxIdempotent)
	}
	if err := l.settle(answer{id: 1}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"33/32: x"}, taken(t, l, time.Now())); diff != "" {
		t.Errorf("sent after an answer (-want +got):\n%s", diff)
	}
}

// A batch that expired before it was sent must not leave a hole in the numbers.
func TestLaneExpiryLeavesNoHole(t *testing.T) {
	p, l := dryPublisher(PublisherConfig{Idempotent: true, MaxBatchRecords: 1})
	defer p.stopDry()
	put(t, p, "a", "b")
	l.hasProducer = true
	l.queue[1].created = time.Now().Add(time.Hour)
	l.expire(time.Now().Add(time.Minute))
	if diff := cmp.Diff([]string{"2/0: b"}, taken(t, l, time.Now())); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
}

// When the stream is lost in the middle of draining, what was in front of the failed number may be stored, what was
// behind it is not.
func TestLaneLostWhileDraining(t *testing.T) {
	p, l := dryPublisher(PublisherConfig{Idempotent: true, MaxBatchRecords: 1})
	defer p.stopDry()
	pendings := put(t, p, "a", "b", "c", "d")
	l.hasProducer = true
	taken(t, l, time.Now())
	if err := l.settle(answer{id: 2, failed: &Error{Retry: wire.RetryFatal}}); err != nil {
		t.Fatalf("draining: %v", err)
	}
	put(t, p, "e")
	if got := taken(t, l, time.Now()); got != nil {
		t.Errorf("sent while draining: %v", got)
	}
	l.settleStream("", errors.New("lost"))
	_, err := pendings[0].Wait(t.Context())
	is(t, err, ErrOutcomeUnknown)
	if l.hasProducer {
		t.Error("the old producer id is kept")
	}
	l.hasProducer, l.nextSequence = true, 0
	if diff := cmp.Diff([]string{"3/0: c", "4/1: d", "5/2: e"}, taken(t, l, time.Now())); diff != "" {
		t.Errorf("sent again (-want +got):\n%s", diff)
	}
}

// A failed number in the middle: those in front get their answers, those behind it are numbered anew, whatever order
// the answers come in.
func TestLaneDrains(t *testing.T) {
	gap := &wire.PublishRefused{Reason: wire.RefusedReason{Kind: wire.RefusedGap, Expected: 1}}
	fatal := &Error{Retry: wire.RetryFatal}
	for _, order := range [][]answer{
		{{id: 1}, {id: 2, failed: fatal}, {id: 3, refused: gap}, {id: 4, refused: gap}},
		{{id: 2, failed: fatal}, {id: 3, refused: gap}, {id: 4, refused: gap}, {id: 1}},
		{{id: 2, failed: fatal}, {id: 4, failed: &Error{Retry: wire.RetryAfter}}, {id: 1}, {id: 3, refused: gap}},
	} {
		p, l := dryPublisher(PublisherConfig{Idempotent: true, MaxBatchRecords: 1})
		pendings := put(t, p, "a", "b", "c", "d")
		l.hasProducer = true
		taken(t, l, time.Now())
		for i, a := range order {
			err := l.settle(a)
			if last := i == len(order)-1; isA[*restart](err) != last {
				t.Errorf("answer %d of %v: got %v, want a restart only after the last", i, order, err)
			}
		}
		l.settleStream("", &restart{errNewProducer})
		l.hasProducer, l.nextSequence = true, 0
		if diff := cmp.Diff([]string{"3/0: c", "4/1: d"}, taken(t, l, time.Now())); diff != "" {
			t.Errorf("sent again (-want +got):\n%s", diff)
		}
		if _, err := pendings[0].Wait(t.Context()); err != nil {
			t.Errorf("the one in front: %v", err)
		}
		p.stopDry()
	}
}

// The publish path has a budget: a batch costs a few allocations, a record none of its own.
func TestPublishAllocates(t *testing.T) {
	p, l := dryPublisher(PublisherConfig{})
	defer p.stopDry()
	ctx := context.Background()
	m := Message{Payload: make([]byte, 256)}
	var out []byte
	now := time.Now()
	round := func() {
		for range 10 * DefaultMaxBatchRecords {
			if _, err := p.Publish(ctx, m); err != nil {
				t.Fatal(err)
			}
		}
		out = l.take(out[:0], now)
		for len(l.queue) > 0 {
			if err := l.settle(answer{id: l.base, offset: 1, hasOffset: true}); err != nil {
				t.Fatal(err)
			}
		}
	}
	perRecord := testing.AllocsPerRun(50, round) / (10 * DefaultMaxBatchRecords)
	if perRecord > 0.15 {
		t.Errorf("%.2f allocations for each record, want at most 0.15", perRecord)
	}
}

func BenchmarkPublish(b *testing.B) {
	p, l := dryPublisher(PublisherConfig{})
	defer p.stopDry()
	ctx := context.Background()
	m := Message{Payload: make([]byte, 256)}
	var out []byte
	now := time.Now()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := p.Publish(ctx, m); err != nil {
			b.Fatal(err)
		}
		if i%640 == 639 {
			for l.wait(now) == 0 {
				out = l.take(out[:0], now)
			}
			for len(l.queue) > 0 {
				if err := l.settle(answer{id: l.base, offset: 1, hasOffset: true}); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
}
