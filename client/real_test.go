package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"felix.dev/felix/broker"
	"felix.dev/felix/broker/admin"
	"felix.dev/felix/client"
)

// The tests in this file run the client against the real broker in development mode.

// devBroker is what a broker in development mode writes for those who want to use it.
type devBroker struct {
	Addr   string `json:"addr"`
	Admin  string `json:"admin"`
	Tenant string `json:"tenant"`
	Token  string `json:"token"`
	CAFile string `json:"ca_file"`

	dir  string
	stop func()
}

func startReal(t *testing.T, dir, listen string) *devBroker {
	t.Helper()
	b, err := broker.Start(t.Context(), broker.Config{
		DataDir: dir, Dev: true, Listen: listen, Admin: broker.Admin{Listen: "127.0.0.1:0"},
		Streams: broker.StreamDefaults{SegmentBytes: 1 << 20, QueueEntries: 1 << 16},
	})
	if err != nil {
		t.Fatalf("start the broker: %v", err)
	}
	d := &devBroker{dir: dir}
	d.stop = sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := b.Shutdown(ctx); err != nil {
			t.Errorf("stop the broker: %v", err)
		}
		if err := b.Wait(); err != nil {
			t.Errorf("the broker ended with %v", err)
		}
	})
	t.Cleanup(d.stop)
	doc, err := os.ReadFile(broker.DevContext(dir))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(doc, d); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *devBroker) config() client.Config {
	return client.Config{
		Addrs: []string{d.Addr}, Tenant: d.Tenant, Token: d.Token,
		CAFile: filepath.Join(filepath.Dir(broker.DevContext(d.dir)), d.CAFile),
	}
}

func (d *devBroker) create(t *testing.T, name string, shards uint32, durability string) client.Stream {
	t.Helper()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	a := &admin.Client{BaseURL: "http://" + d.Admin, Token: d.Token, HTTP: &http.Client{Transport: transport}}
	spec := admin.StreamSpec{
		Name: admin.Name{Tenant: d.Tenant, Namespace: "default", Stream: name}, Shards: shards, Durability: durability,
	}
	if _, _, err := a.CreateStream(realContext(t), spec, ""); err != nil {
		t.Fatalf("create stream %s: %v", name, err)
	}
	return client.Stream{Namespace: "default", Name: name}
}

func realContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func dialReal(t *testing.T, cfg client.Config) *client.Client {
	t.Helper()
	c, err := client.Dial(realContext(t), cfg)
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return c
}

// collect reads n events and checks that nothing is missing between them.
func collect(ctx context.Context, sub *client.Subscription, n int) ([]string, error) {
	var got []string
	for len(got) < n {
		events, err := sub.NextBatch(ctx)
		if err != nil {
			return got, fmt.Errorf("after %d events: %w", len(got), err)
		}
		for _, e := range events {
			if e.Gap != 0 {
				return got, fmt.Errorf("%d records are missing in front of offset %d", e.Gap, e.Offset)
			}
			got = append(got, string(e.Payload))
		}
	}
	return got, nil
}

func sequence(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprint(i)
	}
	return out
}

func TestRealPublishers(t *testing.T) {
	d := startReal(t, t.TempDir(), "127.0.0.1:0")
	c := dialReal(t, d.config())
	ctx := realContext(t)
	for _, durability := range []string{"Memory", "Durable"} {
		for name, cfg := range map[string]client.PublisherConfig{
			"acked": {}, "unacked": {Unacked: true}, "idempotent": {Idempotent: true}, "linger": {Linger: time.Millisecond},
			"at-least-once": {AtLeastOnce: true}, "single": {MaxBatchRecords: 1},
		} {
			t.Run(durability+"/"+name, func(t *testing.T) {
				s := d.create(t, durability+"-"+name, 1, durability)
				live, err := c.Subscribe(ctx, s, client.SubscribeConfig{})
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = live.Close() }()
				p, err := c.NewPublisher(s, cfg)
				if err != nil {
					t.Fatal(err)
				}
				const n = 500
				for i := range n {
					if _, err := p.Publish(ctx, client.Message{Payload: fmt.Append(nil, i)}); err != nil {
						t.Fatal(err)
					}
				}
				if err := p.Close(ctx); err != nil {
					t.Fatal(err)
				}
				got, err := collect(ctx, live, n)
				if diff := cmp.Diff(sequence(n), got); diff != "" || err != nil {
					t.Errorf("live: error %v (-want +got):\n%s", err, diff)
				}
				history, err := c.Subscribe(ctx, s, client.SubscribeConfig{Start: client.Earliest()})
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = history.Close() }()
				got, err = collect(ctx, history, n)
				if diff := cmp.Diff(sequence(n), got); diff != "" || err != nil {
					t.Errorf("history: error %v (-want +got):\n%s", err, diff)
				}
			})
		}
	}
}

// B31, B35: the broker is restarted under an idempotent publisher and a reader; both go on by themselves.
func TestRealRestart(t *testing.T) {
	dir := t.TempDir()
	d := startReal(t, dir, "127.0.0.1:0")
	s := d.create(t, "orders", 1, "Durable")
	c := dialReal(t, d.config())
	ctx := realContext(t)
	sub, err := c.Subscribe(ctx, s, client.SubscribeConfig{Start: client.Earliest()})
	if err != nil {
		t.Fatal(err)
	}
	const rounds, each = 3, 200
	var reading sync.WaitGroup
	reading.Go(func() {
		got, err := collect(ctx, sub, rounds*each)
		if diff := cmp.Diff(sequence(rounds*each), got); diff != "" || err != nil {
			t.Errorf("read: error %v (-want +got):\n%s", err, diff)
		}
	})
	p, err := c.NewPublisher(s, client.PublisherConfig{Idempotent: true, MaxBatchRecords: 7})
	if err != nil {
		t.Fatal(err)
	}
	for i := range rounds * each {
		if _, err := p.Publish(ctx, client.Message{Payload: fmt.Append(nil, i)}); err != nil {
			t.Fatal(err)
		}
		if i%each == each/2 && i < (rounds-1)*each {
			d.stop()
			d = startReal(t, dir, d.Addr)
		}
	}
	if err := p.Close(ctx); err != nil {
		t.Errorf("close publisher: %v", err)
	}
	reading.Wait()
	if err := sub.Close(); err != nil {
		t.Error(err)
	}
}

func TestRealKeys(t *testing.T) {
	d := startReal(t, t.TempDir(), "127.0.0.1:0")
	s := d.create(t, "keyed", 4, "Memory")
	c := dialReal(t, d.config())
	ctx := realContext(t)
	shards, err := c.Shards(ctx, s)
	if err != nil || shards.Count != 4 {
		t.Fatalf("shards: got %+v, error %v; want 4", shards, err)
	}
	const n, keys = 400, 16
	for _, cfg := range []client.PublisherConfig{{}, {Idempotent: true}} {
		p, err := c.NewPublisher(s, cfg)
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			key := fmt.Appendf(nil, "k%d", i%keys)
			if _, err := p.Publish(ctx, client.Message{Key: key, Payload: fmt.Appendf(nil, "%s %d", key, i)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.Close(ctx); err != nil {
			t.Fatal(err)
		}
	}
	// Each key is in one shard, and in order there.
	home, last, total := map[string]uint32{}, map[string]int{}, 0
	for shard := range shards.Count {
		sub, err := c.Subscribe(ctx, s, client.SubscribeConfig{Start: client.Earliest(), Shard: shard})
		if err != nil {
			t.Fatal(err)
		}
		for {
			short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
			e, err := sub.Next(short)
			cancel()
			if err != nil {
				break
			}
			var key string
			var i int
			if _, err := fmt.Sscan(string(e.Payload), &key, &i); err != nil {
				t.Fatal(err)
			}
			total++
			if was, ok := home[key]; ok && was != shard {
				t.Errorf("key %s is in shards %d and %d", key, was, shard)
			}
			if i < last[key] && i >= keys { // the second publisher begins anew
				t.Errorf("key %s: %d after %d", key, i, last[key])
			}
			home[key], last[key] = shard, i
		}
		if err := sub.Close(); err != nil {
			t.Error(err)
		}
	}
	if total != 2*n {
		t.Errorf("%d records are in the shards, want %d", total, 2*n)
	}
}

// B02: half of the readers of one connection stand still.
func TestRealStalledHalf(t *testing.T) {
	d := startReal(t, t.TempDir(), "127.0.0.1:0")
	s := d.create(t, "wide", 1, "Memory")
	cfg := d.config()
	cfg.StreamWindow = 64 << 10
	c := dialReal(t, cfg)
	ctx := realContext(t)
	const subs, n = 10, 200
	var reading sync.WaitGroup
	for i := range subs {
		sub, err := c.Subscribe(ctx, s, client.SubscribeConfig{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = sub.Close() }()
		if i%2 == 0 {
			reading.Go(func() {
				if _, err := collect(ctx, sub, n); err != nil {
					t.Errorf("a reader beside stalled ones: %v", err)
				}
			})
		}
	}
	p, err := c.NewPublisher(s, client.PublisherConfig{})
	if err != nil {
		t.Fatal(err)
	}
	payload := make([]byte, 8<<10)
	for range n {
		if _, err := p.Publish(ctx, client.Message{Payload: payload}); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Close(ctx); err != nil {
		t.Errorf("close publisher: %v", err)
	}
	reading.Wait()
}

func TestRealRefusals(t *testing.T) {
	d := startReal(t, t.TempDir(), "127.0.0.1:0")
	s := d.create(t, "here", 1, "Memory")
	c := dialReal(t, d.config())
	ctx := realContext(t)
	missing := client.Stream{Namespace: "default", Name: "missing"}
	_, err := c.Publish(ctx, missing, client.Message{Payload: []byte("x")})
	if e, ok := errors.AsType[*client.Error](err); !ok || e.Code.String() != "not_found" {
		t.Errorf("publish to a missing stream: got %v, want not_found", err)
	}
	_, err = c.Subscribe(ctx, missing, client.SubscribeConfig{})
	if e, ok := errors.AsType[*client.Error](err); !ok || e.Code.String() != "not_found" {
		t.Errorf("subscribe to a missing stream: got %v, want not_found", err)
	}
	_, err = c.Shards(ctx, missing)
	if !errors.Is(err, client.ErrRetryable) {
		t.Errorf("shards of a missing stream: got %v, want not_found", err)
	}
	_, err = c.Subscribe(ctx, s, client.SubscribeConfig{Start: client.At(7)})
	if e, ok := errors.AsType[*client.CursorError](err); !ok || e.Reason != "in_future" {
		t.Errorf("subscribe past the end: got %v, want in_future", err)
	}
	if _, err = c.Publish(ctx, s, client.Message{Payload: []byte("x")}); err != nil {
		t.Errorf("publish after the refusals: %v", err)
	}
	bad := d.config()
	bad.Token = "not a token"
	if c, err := client.Dial(ctx, bad); err == nil {
		t.Error("a bad token was accepted")
		_ = c.Close()
	} else if e, ok := errors.AsType[*client.Error](err); !ok || e.Code.String() != "unauthenticated" {
		t.Errorf("bad token: got %v, want unauthenticated", err)
	}
}
