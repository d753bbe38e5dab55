//go:build chaos

package chaos

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"sigs.k8s.io/yaml"

	"felix.dev/felix/broker"
	"felix.dev/felix/broker/admin"
	"felix.dev/felix/client"
)

// member is one broker of a cluster, in a process of its own or in this one.
type member interface {
	node() string
	clientAddr() string
	adminAddr() string
	// startMember runs it and does not wait until it serves; killMember ends it at once. Nothing happens if it is so.
	startMember()
	killMember()
	running() bool
}

// cluster is brokers, wherever they run, and how they are reached.
type cluster struct {
	t         *testing.T
	dir       string
	members   []member
	token, ca string
}

// small makes rolls, trims, reads from logs and lag notices frequent.
func small(_ string, c *broker.Config) {
	c.Streams = broker.StreamDefaults{SegmentBytes: 256 << 10, TailBytes: 256 << 10, QueueEntries: 64}
	c.Cluster.Groups = 2
}

// prepare makes the files of a cluster as `felix dev-cluster` does, and changes the configurations. There are no members yet.
func prepare(t *testing.T, brokers int, change ...func(node string, c *broker.Config)) (c *cluster, configs []broker.Config) {
	t.Helper()
	felix, err := felixBinary()
	if err != nil {
		t.Fatal(err)
	}
	c = &cluster{t: t, dir: t.TempDir()}
	c.ca = filepath.Join(c.dir, "tls", "ca.crt")
	cmd := exec.Command(felix, "dev-cluster", "--prepare", "--free-ports", "--data", c.dir, "--brokers", strconv.Itoa(brokers))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var context struct{ Token string }
	text, err := os.ReadFile(filepath.Join(c.dir, "context.yaml"))
	if err == nil {
		err = yaml.Unmarshal(text, &context)
	}
	if err != nil {
		t.Fatal(err)
	}
	c.token = context.Token
	for i := range brokers {
		cfg, err := broker.ReadConfig(filepath.Join(c.dir, "n"+strconv.Itoa(i+1), "broker.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range slices.Concat([]func(string, *broker.Config){small}, change) {
			f(cfg.NodeID, &cfg)
		}
		configs = append(configs, cfg)
	}
	return c, configs
}

// newProcesses is a cluster of processes that run and serve.
func newProcesses(t *testing.T, brokers int, change ...func(node string, c *broker.Config)) *cluster {
	t.Helper()
	c, configs := prepare(t, brokers, change...)
	for _, cfg := range configs {
		c.members = append(c.members, c.newMember(cfg))
	}
	c.startAll()
	c.untilInSync() // a cluster begins with one broker
	return c
}

// newMember makes a process of a configuration. Nothing runs yet.
func (c *cluster) newMember(cfg broker.Config) *process {
	c.t.Helper()
	felix, err := felixBinary()
	if err != nil {
		c.t.Fatal(err)
	}
	p := &process{
		t: c.t, felix: felix, dir: filepath.Dir(cfg.DataDir), name: cfg.NodeID,
		addr: cfg.Listen, admin: cfg.Admin.Listen, token: c.token, ca: c.ca,
	}
	p.configure(cfg)
	p.attend()
	return p
}

// configure writes the configuration that the next process of p reads.
func (p *process) configure(cfg broker.Config) {
	p.t.Helper()
	text, err := yaml.Marshal(cfg)
	if err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.dir, "broker.yaml"), text, 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// config is the configuration as it is written.
func (p *process) config() broker.Config {
	p.t.Helper()
	cfg, err := broker.ReadConfig(filepath.Join(p.dir, "broker.yaml"))
	if err != nil {
		p.t.Fatal(err)
	}
	return cfg
}

func (p *process) node() string       { return p.name }
func (p *process) clientAddr() string { return p.addr }
func (p *process) adminAddr() string  { return p.admin }
func (p *process) killMember()        { p.kill() }
func (p *process) running() bool      { return p.cmd != nil }

func (p *process) startMember() {
	if p.cmd == nil {
		p.run()
	}
}

// startAll starts who is not running and waits until all serve.
func (c *cluster) startAll() {
	c.t.Helper()
	for _, m := range c.members {
		m.startMember()
	}
	for _, m := range c.members {
		c.untilReady(m)
	}
}

// member finds one by its name.
func (c *cluster) member(node string) member {
	c.t.Helper()
	for _, m := range c.members {
		if m.node() == node {
			return m
		}
	}
	c.t.Fatalf("there is no broker %q", node)
	return nil
}

func (p *process) over() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

func (c *cluster) http(m member) *admin.Client {
	return &admin.Client{BaseURL: "http://" + m.adminAddr(), Token: c.token, HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
}

// anyHTTP asks somebody who is running.
func (c *cluster) anyHTTP() *admin.Client {
	c.t.Helper()
	for _, m := range c.members {
		if m.running() {
			return c.http(m)
		}
	}
	c.t.Fatal("nobody is running")
	return nil
}

func nameOf(stream string) admin.Name {
	return admin.Name{Tenant: tenant, Namespace: namespace, Stream: stream}
}

// create makes a stream, and waits until it can be written.
func (c *cluster) create(name, durability string, change ...func(*admin.StreamSpec)) {
	c.t.Helper()
	spec := admin.StreamSpec{Name: nameOf(name), Durability: durability}
	for _, f := range change {
		f(&spec)
	}
	if _, _, err := c.anyHTTP().CreateStream(c.t.Context(), spec, ""); err != nil {
		c.t.Fatalf("create %s: %v", name, err)
	}
	c.leader(name, 0)
}

// dial makes a client that comes in at a broker and knows the others. It lives as long as the test.
func (c *cluster) dial(first member, change ...func(*client.Config)) *client.Client {
	c.t.Helper()
	cfg := client.Config{Addrs: []string{first.clientAddr()}, Tenant: tenant, Token: c.token, CAFile: c.ca, PublishTimeout: patience}
	for _, m := range c.members {
		if m != first {
			cfg.Addrs = append(cfg.Addrs, m.clientAddr())
		}
	}
	for _, f := range change {
		f(&cfg)
	}
	cl, err := client.Dial(c.t.Context(), cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		if err := cl.Close(); err != nil && !strings.Contains(err.Error(), "closed") {
			c.t.Errorf("close client: %v", err)
		}
	})
	return cl
}

// only leaves a client with the one address.
func only(cfg *client.Config) { cfg.Addrs = cfg.Addrs[:1] }

// others are all members but some.
func (c *cluster) others(except ...member) []member {
	return slices.DeleteFunc(slices.Clone(c.members), func(m member) bool { return slices.Contains(except, m) })
}

// process is a member as a process.
func (c *cluster) process(i int) *process {
	c.t.Helper()
	p, is := c.members[i].(*process)
	if !is {
		c.t.Fatalf("broker %s is no process", c.members[i].node())
	}
	return p
}

func (c *cluster) index(m member) int { return slices.Index(c.members, m) }

// pause stops the process while f runs.
func (p *process) pause(f func()) {
	p.t.Helper()
	p.signal(syscall.SIGSTOP)
	defer p.signal(syscall.SIGCONT)
	f()
}

// wipe removes what a process that is not there has kept, as a new volume would.
func (p *process) wipe() {
	p.t.Helper()
	if err := os.RemoveAll(p.data()); err != nil {
		p.t.Fatal(err)
	}
}
