package bench

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"felix.dev/felix/broker"
	"felix.dev/felix/client"
)

// inProcess is a broker in this process, so that the race detector sees both sides.
type inProcess struct {
	access
	b   *broker.Broker
	obs observer
}

func startInProcess(t *testing.T) *inProcess {
	t.Helper()
	b, r, err := (&brokerOptions{}).start(t.Context(), t.TempDir(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	return &inProcess{b: b, access: access{
		cfg:   client.Config{Addrs: []string{r.Addr}, Tenant: r.Tenant, Token: r.Token, CAFile: r.CAFile},
		admin: newAdmin(r.Admin, r.Token),
	}}
}

func (p *inProcess) usage(_ context.Context, m moment) (*usage, error) {
	u, err := p.obs.look(m)
	return &u, err
}

func (p *inProcess) Close() error {
	p.closeIdle()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return p.b.Shutdown(ctx)
}

// tiny is a load that is over at once.
func tiny(scenario string, f func(*params)) params {
	p := valid()
	p.Scenario, p.Size, p.Fanout, p.Window, p.Seed = scenario, 100, 3, 1600, 1
	p.Duration, p.Warmup, p.Volume = 1, 1, 20_000
	f(&p)
	return p
}

func TestScenarios(t *testing.T) {
	for _, c := range []struct {
		name  string
		p     params
		check func(*testing.T, *report)
	}{
		{
			name: "fanout", p: tiny(scenarioFanout, func(p *params) { p.Streams, p.Publishers, p.Conns = 2, 2, 2 }),
			check: func(t *testing.T, r *report) {
				if r.Delivered < 2*200*3 || r.Timed == 0 {
					t.Errorf("%d delivered, %d timed", r.Delivered, r.Timed)
				}
			},
		},
		{
			name: "fanout, durable, acked, in small batches",
			p: tiny(scenarioFanout, func(p *params) {
				p.Durability, p.Acked, p.Batch, p.OnFull = durabilityDurable, true, 2, onFullCatchUp
			}),
			check: func(t *testing.T, r *report) {
				if r.Delivered < 200*3 {
					t.Errorf("%d delivered", r.Delivered)
				}
			},
		},
		{
			name: "publish, durable", p: tiny(scenarioPublish, func(p *params) { p.Durability, p.Publishers, p.Inflight = durabilityDurable, 3, 4 }),
			check: func(t *testing.T, r *report) {
				if r.Delivered != r.Published || r.Delivered < 200 || r.Timed == 0 || !r.Params.Acked {
					t.Errorf("%d published, %d read back, %d timed", r.Published, r.Delivered, r.Timed)
				}
			},
		},
		{
			name: "publish, memory", p: tiny(scenarioPublish, func(p *params) { p.Streams = 2 }),
			check: func(t *testing.T, r *report) {
				if r.Delivered+r.Expired != r.Published {
					t.Errorf("%d published, %d read back, %d expired", r.Published, r.Delivered, r.Expired)
				}
			},
		},
		{
			name: "latency, open", p: tiny(scenarioLatency, func(p *params) { p.Rate, p.Duration = 1000, seconds(100*time.Millisecond) }),
			check: func(t *testing.T, r *report) {
				if r.Timed != 100*3 || r.Sent50 > r.P50+1 {
					t.Errorf("%d timed; from send %v, since due %v", r.Timed, r.Sent50, r.P50)
				}
			},
		},
		{
			name: "latency, closed", p: tiny(scenarioLatency, func(p *params) { p.Inflight, p.Fanout = 2, 1 }),
			check: func(t *testing.T, r *report) {
				if r.Timed < 200 || r.P50 <= 0 {
					t.Errorf("%d timed, p50 %v", r.Timed, r.P50)
				}
			},
		},
		{
			name: "slow, nobody overflows", p: tiny(scenarioSlow, func(p *params) { p.Stalled, p.Baseline = 1, true }),
			check: func(t *testing.T, r *report) {
				if s := r.Slow; s == nil || s.Baseline == nil || s.Kept == nil || s.RSSDifference == nil || s.Healthy != 2 {
					t.Errorf("comparison %+v", s)
				}
				if a := r.Stalled; a == nil || a.Delivered != a.Expected || a.Expected != r.Published {
					t.Errorf("stalled %+v, %d published", a, r.Published)
				}
			},
		},
		{
			// The stalled reader's window takes 512 KiB, its queue 64 records; the rest of 2 MiB
			// it is told about.
			name: "slow, the queue overflows",
			p: tiny(scenarioSlow, func(p *params) {
				p.Size, p.Batch, p.Window, p.Queue, p.Volume, p.Stalled = 4096, 1, 16*4096, 64, 2<<20, 1
			}),
			check: func(t *testing.T, r *report) {
				a := r.Stalled
				if a == nil || a.Lagged != 1 || a.Dropped == 0 || a.Unaccounted != 0 {
					t.Errorf("stalled %+v", a)
				}
				if r.Dropped != 0 || r.Lagged != 0 || r.Slow.Baseline != nil {
					t.Errorf("healthy: %d dropped, %d lagged", r.Dropped, r.Lagged)
				}
			},
		},
		{
			name: "idle", p: tiny(scenarioIdle, func(p *params) { p.Fanout = 20 }),
			check: func(t *testing.T, r *report) {
				if r.Idle == nil || r.Idle.Subscriptions != 20 || r.Delivered != 20 || r.Published != 1 {
					t.Errorf("idle %+v, %d published, %d delivered", r.Idle, r.Published, r.Delivered)
				}
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := &bench{p: c.p, version: "v", start: func(context.Context) (target, error) { return startInProcess(t), nil }}
			r, err := b.run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if r.Unaccounted != 0 || r.Expected == 0 || r.Scenario != c.p.Scenario || r.StartedAt.IsZero() {
				t.Errorf("report %+v", r)
			}
			if r.GSO == nil || r.GRO == nil {
				t.Error("it is not known whether datagrams go in trains")
			}
			c.check(t, r)
		})
	}
}

// TestOwnProcess runs a bench as a user does: the broker is another process.
func TestOwnProcess(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "r.json")
	out, err := execute(t, "fanout", "--size", "100", "--fanout", "2", "--duration", "1ms", "--warmup", "0s", "--volume", "20000",
		"--procs", "1", "--plot", "--cpuprofile", filepath.Join(dir, "cpu"), "--memprofile", filepath.Join(dir, "mem"),
		"--load-cpuprofile", filepath.Join(dir, "load"), "--json", file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out, "fanout: 100 B, memory, fan-out 2") {
		t.Errorf("summary:\n%s", out)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var o object
	if err := json.Unmarshal(b, &o); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"broker_cpu_s_per_mdeliveries", "broker_rss_peak_bytes", "broker.goroutines", "gso"} {
		if _, ok := lookup(o, key); !ok {
			t.Errorf("no %q in %s", key, b)
		}
	}
	if o["version"] != "v-test" {
		t.Errorf("version %v", o["version"])
	}
	for _, name := range []string{"cpu", "mem", "load"} {
		if s, err := os.Stat(filepath.Join(dir, name)); err != nil || s.Size() == 0 {
			t.Errorf("%s profile: %v", name, err)
		}
	}
	if _, err := execute(t, "compare", file, file); err != nil {
		t.Error(err)
	}
}

// TestOwnProcessThatFails: what the broker says is what the user gets.
func TestOwnProcessThatFails(t *testing.T) {
	if _, err := execute(t, "fanout", "--dir", filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a broker has started in a directory that is not there")
	}
}

// TestSomebodyElsesBroker loads a broker that the bench has not started.
func TestSomebodyElsesBroker(t *testing.T) {
	p := startInProcess(t)
	defer func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}()
	at := []string{
		"--addr", p.cfg.Addrs[0], "--tenant", p.cfg.Tenant, "--token", p.cfg.Token, "--ca-file", p.cfg.CAFile,
		"--size", "100", "--duration", "1ms", "--warmup", "0s",
	}
	run := func(args ...string) object {
		t.Helper()
		out, err := execute(t, append(append(args, at...), "--json")...)
		if err != nil {
			t.Fatal(err)
		}
		var o object
		if err := json.Unmarshal([]byte(out), &o); err != nil {
			t.Fatalf("%v in %q", err, out)
		}
		return o
	}
	admin := strings.TrimPrefix(p.admin.BaseURL, "http://")
	before, err := p.admin.Streams(t.Context(), p.cfg.Tenant, "")
	if err != nil {
		t.Fatal(err)
	}
	o := run("fanout", "--fanout", "2", "--admin", admin, "--broker-pid", strconv.Itoa(os.Getpid()))
	if _, ok := o["broker_cpu_s"]; !ok {
		t.Error("no CPU time of a process that is known")
	}
	after, err := p.admin.Streams(t.Context(), p.cfg.Tenant, "")
	if err != nil || len(after) != len(before) {
		t.Errorf("%d streams before, %d after, %v", len(before), len(after), err)
	}
	o = run("publish", "--publishers", "2", "--stream", "demo")
	if _, ok := o["broker_cpu_s"]; ok {
		t.Error("CPU time of a process that is not known")
	}
	if o["delivered"] != o["published"] {
		t.Errorf("%v of %v read back", o["delivered"], o["published"])
	}
}

// TestInterrupted: half a run is no report.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cmd := root()
	var out strings.Builder
	cmd.SetOut(&out)
	cmd.SetErr(t.Output())
	dir := t.TempDir()
	cmd.SetArgs([]string{"bench", "fanout", "--size", "100", "--duration", "1h", "--dir", dir, "--json"})
	time.AfterFunc(500*time.Millisecond, cancel)
	if err := cmd.ExecuteContext(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if out.Len() > 0 {
		t.Errorf("it printed %q", out.String())
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("it left %v behind, %v", left, err)
	}
}
