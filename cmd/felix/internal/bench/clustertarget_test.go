package bench

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestCluster runs a load on a cluster of processes, through a broker that forwards.
func TestCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("starts three processes")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "r.json")
	out, err := execute(t, "publish", "--durability", "quorum", "--through", "follower", "--size", "100", "--publishers", "4",
		"--duration", "1ms", "--warmup", "0s", "--volume", "20000", "--dir", dir, "--cpuprofile", filepath.Join(dir, "cpu"), "--json", file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"quorum (3 brokers, through the follower)", "(leader)", " 0 lost, 0 unaccounted"} {
		if !strings.Contains(out, want) {
			t.Errorf("the summary does not say %q:\n%s", want, out)
		}
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var r struct {
		Cluster   *clusterReport
		Delivered int
	}
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	c := r.Cluster
	if c == nil || r.Delivered < 200 || len(c.Brokers) != 3 || c.Leader == "" || c.SyncTime <= 0 || c.Syncs < 3 {
		t.Fatalf("cluster %+v", c)
	}
	for _, m := range c.Brokers {
		if m.CPU <= 0 || m.RSS <= 0 || m.Syncs == 0 {
			t.Errorf("broker %+v", m)
		}
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(left) != 4 { // the report, and a profile of each broker
		t.Errorf("it left %v, %v", left, err)
	}
}

// TestIdleCluster: the streams are alive after they were left alone.
func TestIdleCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("starts three processes")
	}
	out, err := execute(t, "idle-cluster", "--streams", "3", "--warmup", "10ms", "--duration", "100ms", "--dir", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"3 streams in ", "% of one core for all brokers", "3 of 3 delivered"} {
		if !strings.Contains(out, want) {
			t.Errorf("the summary does not say %q:\n%s", want, out)
		}
	}
}

func TestProbeSync(t *testing.T) {
	dir := t.TempDir()
	if d, err := probeSync(dir); err != nil || d <= 0 || d > time.Minute {
		t.Errorf("%v, %v", d, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("it left %v behind, %v", left, err)
	}
	if _, err := probeSync(filepath.Join(dir, "none")); err == nil {
		t.Error("a folder that is not there was measured")
	}
}

func TestSpread(t *testing.T) {
	for _, c := range []struct {
		counts map[string]int
		want   int
	}{
		{nil, 0},
		{map[string]int{"a": 3, "b": 3, "c": 2}, 1},
		{map[string]int{"a": 8, "b": 0, "c": 0}, 8},
	} {
		if got := spread(c.counts); got != c.want {
			t.Errorf("%v: %d", c.counts, got)
		}
	}
}
