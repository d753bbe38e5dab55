package bench

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"felix.dev/felix/cmd/felix/internal/settings"
)

// root is a program with the command, as felix is.
func root() *cobra.Command {
	cmd := &cobra.Command{Use: "felix", Version: "v-test", SilenceUsage: true}
	cmd.AddCommand(NewCommand())
	return cmd
}

func execute(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := root()
	var out, errOut bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&errOut)
	cmd.SetArgs(append([]string{"bench"}, args...))
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func TestCommandRefuses(t *testing.T) {
	for _, v := range []string{settings.EnvToken, settings.EnvAdmin, settings.EnvContext} {
		t.Setenv(v, "")
	}
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"bad size":                {[]string{"fanout", "--size", "3"}, "--size 3"},
		"an argument":             {[]string{"fanout", "x"}, "takes no arguments"},
		"two files":               {[]string{"fanout", "--json", "a", "b"}, "takes no arguments"},
		"addr without token":      {[]string{"fanout", "--addr", "127.0.0.1:1", "--tenant", "t"}, "no token"},
		"addr without a stream":   {[]string{"fanout", "--addr", "127.0.0.1:1", "--tenant", "t", "--token", "t"}, "a stream is needed"},
		"slow with nobody":        {[]string{"slow", "--stalled", "0"}, "compares nothing"},
		"compare with one":        {[]string{"compare", "a"}, "want two reports"},
		"baseline elsewhere":      {[]string{"fanout", "--baseline"}, "unknown flag"},
		"idle of unknown process": {[]string{"idle", "--addr", "127.0.0.1:1", "--tenant", "t", "--token", "t", "--stream", "s"}, "no --broker-pid"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := execute(t, c.args...); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestJSONFlagTakesAFile(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, ""},
		{[]string{"--json"}, "-"},
		{[]string{"--json=f"}, "f"},
		{[]string{"--json", "f"}, "f"},
		{[]string{"--json", "f", "--size", "99"}, "f"},
		{[]string{"--json", "--size", "99"}, "-"},
	} {
		o := &options{}
		cmd := &cobra.Command{Use: "x", Args: o.takeFile, RunE: func(*cobra.Command, []string) error { return nil }}
		o.addFlags(cmd.Flags())
		cmd.SetArgs(append([]string{}, c.args...))
		if err := cmd.Execute(); err != nil || o.json != c.want {
			t.Errorf("%q: %q, %v", c.args, o.json, err)
		}
	}
}

func TestHelpSaysWhatAScenarioIs(t *testing.T) {
	for _, name := range []string{"fanout", "publish", "latency", "slow", "idle", "idle-cluster", "compare"} {
		out, err := execute(t, name, "--help")
		if err != nil || !strings.Contains(out, "felix bench "+name) {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
	out, err := execute(t)
	if err != nil || strings.Contains(out, "broker      ") {
		t.Errorf("the command for the bench itself is shown: %v\n%s", err, out)
	}
}

// sample is a report with everything in it.
func sample() *report {
	cpu, perM, rss, diff, kept, on := 1.5, 17.7, int64(30<<20), int64(1<<20), 0.97, true
	p := valid()
	p.Scenario, p.Stalled = scenarioSlow, 3
	return &report{
		Scenario: scenarioSlow, Version: "v1", StartedAt: time.Unix(0, 0).UTC(), ElapsedS: 2,
		MsgsPerS: 39000, MBPerS: 160, PublishedPer: 3900, P50: 900, P99: 2500, P999: 4000, Max: 5000, Timed: 1200,
		Published: 7800, Expected: 54600, Delivered: 54600,
		BrokerCPU: &cpu, BrokerCPUPerM: &perM, BrokerRSS: &rss, BrokerRSSIdle: &rss, BrokerRSSPeak: &rss, GSO: &on,
		Broker:  &brokerReport{Mallocs: 3.7, Switches: 1.2},
		Slow:    &slowReport{Healthy: 7, Stalled: 3, PerReader: 5571, Kept: &kept, RSSDifference: &diff},
		Stalled: &account{Expected: 23400, Delivered: 400, Dropped: 23000, Lagged: 3},
		Refused: 2, Params: p, Machine: thisMachine(),
	}
}

func TestSummary(t *testing.T) {
	var out strings.Builder
	sample().writeSummary(&out)
	want := `slow: 256 B, memory, fan-out 10
  rate       39k deliveries/s, 160.0 MB/s; 3.9k published/s; in 2.00 s
  latency    p50 900µs  p99 2.5ms  p99.9 4ms  max 5ms  (1200 timed)
  broker     17.70 s of CPU per million, 0.75 cores; RSS 30.0 MiB (idle 30.0 MiB, peak 30.0 MiB); GSO on, GRO unknown
             1.20 context switches and 3.70 allocations for each
  load       0.00 cores
  healthy    7 readers beside 3 stalled: 5.57k msgs/s each
             97.0 % of the rate without stalled readers
             peak RSS +1.0 MiB against the run without
  stalled    woken afterwards: 400 of 23400 delivered, 23000 reported as dropped, 0 unaccounted; 3 lagged, 0 lost
  account    54600 of 54600 delivered, 0 dropped, 0 lagged, 0 lost, 0 unaccounted
             2 refused for now and sent again, 0 no longer kept when read back
`
	if diff := cmp.Diff(out.String(), want); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
}

func TestDescribe(t *testing.T) {
	for _, c := range []struct {
		f    func(*params)
		want string
	}{
		{func(p *params) { p.Scenario, p.Publishers, p.Durability = scenarioPublish, 64, durabilityDurable }, "256 B, durable (fsync always), 64 publishers with 1 in flight"},
		{func(p *params) { p.Scenario, p.Rate = scenarioLatency, 500 }, "256 B, memory, 500/s, fan-out 10"},
		{func(p *params) {
			p.Scenario, p.Durability, p.Brokers, p.Through = scenarioPublish, durabilityQuorum, 3, throughLeader
		}, "256 B, quorum (3 brokers, through the leader), 1 publishers with 1 in flight"},
		{func(p *params) { p.Scenario, p.Streams = scenarioLatency, 2 }, "256 B, memory, 2 streams, 1 in flight, fan-out 10"},
	} {
		p := valid()
		c.f(&p)
		if got := p.describe(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestReportIsOneObject: what scripts and compare rely on.
func TestReportIsOneObject(t *testing.T) {
	name := filepath.Join(t.TempDir(), "r.json")
	if err := sample().writeJSON(name, nil); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Count(b, []byte("\n")) != 1 {
		t.Errorf("not one line:\n%s", b)
	}
	var o object
	if err := json.Unmarshal(b, &o); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{
		"scenario", "version", "started_at", "msgs_per_s", "mb_per_s", "p50_us", "p99_us", "p999_us",
		"delivered", "dropped", "lagged", "unaccounted", "broker_cpu_s_per_mdeliveries", "client_cpu_s",
		"broker_rss_bytes", "broker_rss_idle_bytes", "broker_rss_peak_bytes", "gso",
		"params.size", "params.fanout", "params.duration_s", "params.seed", "slow.healthy_rate_kept", "machine.cpus",
	} {
		if _, ok := lookup(o, key); !ok {
			t.Errorf("no %q", key)
		}
	}
	if _, ok := lookup(o, "gro"); ok {
		t.Error("GRO is not known and is there")
	}
	if err := sample().writeJSON(filepath.Join(name, "below a file"), nil); err == nil {
		t.Error("a report went nowhere")
	}
}
