package devcluster

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"felix.dev/felix/broker"
	"felix.dev/felix/broker/peer/pki"
	"felix.dev/felix/cmd/felix/internal/settings"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func prepare(t *testing.T, cfg Config) *Cluster {
	t.Helper()
	cfg.FreePorts = cfg.Port == 0
	c, err := Prepare(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// What brokers read fits together, and one of them founds the cluster.
func TestPrepare(t *testing.T) {
	c := prepare(t, Config{Dir: t.TempDir(), Brokers: 5, Change: func(node string, cfg *broker.Config) {
		cfg.Cluster.Zone = "zone-of-" + node
	}})
	if c.Broker("n3") != c.Brokers[2] || c.Broker("n6") != nil {
		t.Error("a broker is not found by its name")
	}
	ports, founders := map[string]bool{}, 0
	for _, b := range c.Brokers {
		cfg, err := broker.ReadConfig(b.ConfigFile())
		if err != nil {
			t.Fatal(err)
		}
		if err := cfg.Validate(); err != nil {
			t.Error(err)
		}
		if cfg.NodeID != b.Name || cfg.Listen != b.Addr || cfg.Admin.Listen != b.Admin || cfg.Cluster.Listen != b.Peer || cfg.Cluster.Zone != "zone-of-"+b.Name {
			t.Errorf("broker %s has the configuration of another one: %+v", b.Name, cfg)
		}
		if slices.Contains(cfg.Cluster.Join, b.Peer) || len(cfg.Cluster.Join) != 4 {
			t.Errorf("broker %s joins %v", b.Name, cfg.Cluster.Join)
		}
		if cfg.Cluster.Found {
			founders++
		}
		files, err := pki.Open(pki.Paths{CA: cfg.Cluster.CAFile, Cert: cfg.Cluster.CertFile, Key: cfg.Cluster.KeyFile}, nil)
		if err != nil || !files.Names(b.Name) {
			t.Errorf("the certificate of broker %s does not name it: %v", b.Name, err)
		}
		for _, addr := range []string{b.Addr, b.Admin, b.Peer} {
			if ports[addr] {
				t.Errorf("%s is given twice", addr)
			}
			ports[addr] = true
		}
	}
	if founders != 1 {
		t.Errorf("%d brokers found the cluster", founders)
	}
	context, err := settings.ReadContextFile(c.ContextFile)
	if err != nil || context.Token != c.Token || context.CAFile != c.CAFile {
		t.Errorf("context file: got %+v, %v", context, err)
	}
}

// The second time keys and certificates are those of the first one.
func TestPrepareAgain(t *testing.T) {
	dir := t.TempDir()
	keep := []string{"key.pem", "ca/ca.crt", "tls/node.crt", "n1/peer/node.crt", "n1/peer/ca.crt"}
	read := func() (texts []string) {
		for _, name := range keep {
			text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, string(text))
		}
		return texts
	}
	prepare(t, Config{Dir: dir})
	first := read()
	again := prepare(t, Config{Dir: dir})
	if diff := cmp.Diff(first, read()); diff != "" {
		t.Errorf("changed (-first +second):\n%s", diff)
	}
	if len(again.Brokers) != 3 {
		t.Errorf("%d brokers, want 3", len(again.Brokers))
	}
	// A context where the command line looks names the same certificates.
	left := filepath.Join(t.TempDir(), "dev", "context.yaml")
	for range 2 {
		if err := again.LeaveContext(left); err != nil {
			t.Fatal(err)
		}
	}
	context, err := settings.ReadContextFile(left)
	if err != nil || context.CAFile != again.CAFile {
		t.Errorf("context file: got %+v, %v", context, err)
	}
}

func TestPorts(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	addr, ok := taken.Addr().(*net.TCPAddr)
	if !ok {
		t.Fatal("no TCP address")
	}
	if _, err := Prepare(t.Context(), Config{Dir: t.TempDir(), Port: addr.Port - 11}); err == nil {
		t.Error("a port that was asked for and is taken was given")
	}
	if _, err := Prepare(t.Context(), Config{Dir: t.TempDir()}); err != nil {
		t.Errorf("any ports: %v", err)
	}
}

func TestValidate(t *testing.T) {
	for _, cfg := range []Config{{}, {Dir: "x", Brokers: 10}, {Dir: "x", Brokers: -1}, {Dir: "x", Port: -1}, {Dir: "x", Port: 65535}} {
		if _, err := Prepare(t.Context(), cfg); err == nil {
			t.Errorf("%+v was taken", cfg)
		}
	}
}
