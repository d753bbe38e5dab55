package broker

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"testing"
	"time"

	"felix.dev/felix/broker/admin"
	"felix.dev/felix/broker/auth"
	"felix.dev/felix/broker/peer/pki"
	"felix.dev/felix/broker/vfs"
	"felix.dev/felix/client"
)

// testCluster is some brokers of one cluster in this process.
type testCluster struct {
	t       *testing.T
	dir     string
	keys    string // JWK set of the tenant
	token   string
	served  pki.Paths // what clients are shown, by all brokers
	brokers map[string]*memberBroker
}

type memberBroker struct {
	c      *testCluster
	node   string
	cfg    Config
	broker *Broker
}

// clusterTimes let leaders stay on a busy machine.
var clusterTimes = Cluster{Heartbeat: Duration(time.Second), Groups: 2}

func newTestCluster(t *testing.T) *testCluster {
	t.Helper()
	c := &testCluster{t: t, dir: t.TempDir(), brokers: map[string]*memberBroker{}}
	if err := pki.CreateCA(filepath.Join(c.dir, "ca"), time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := pki.Issue(filepath.Join(c.dir, "ca"), filepath.Join(c.dir, "served"), "localhost", time.Now()); err != nil {
		t.Fatal(err)
	}
	c.served = pki.In(filepath.Join(c.dir, "served"))
	key, err := auth.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	set, err := auth.NewKeySet(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	c.keys = filepath.Join(c.dir, "keys.jwks")
	if err := auth.WriteJWKS(vfs.OS, c.keys, set); err != nil {
		t.Fatal(err)
	}
	if c.token, err = devToken(key, time.Now()); err != nil {
		t.Fatal(err)
	}
	return c
}

func freeAddr(t *testing.T, network string) string {
	t.Helper()
	if network == "udp" {
		l, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		return l.LocalAddr().String()
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// add prepares a broker that joins those that there are; the first founds the cluster.
func (c *testCluster) add(node string, change ...func(*Config)) *memberBroker {
	c.t.Helper()
	dir := filepath.Join(c.dir, node)
	if err := pki.Issue(filepath.Join(c.dir, "ca"), filepath.Join(dir, "pki"), node, time.Now()); err != nil {
		c.t.Fatal(err)
	}
	paths := pki.In(filepath.Join(dir, "pki"))
	own := clusterTimes
	own.Listen = freeAddr(c.t, "tcp")
	own.Advertise = own.Listen
	own.CAFile, own.CertFile, own.KeyFile = paths.CA, paths.Cert, paths.Key
	for _, b := range c.brokers {
		own.Join = append(own.Join, b.cfg.Cluster.Listen)
	}
	udp := freeAddr(c.t, "udp")
	b := &memberBroker{c: c, node: node, cfg: Config{
		DataDir: filepath.Join(dir, "data"), NodeID: node, Listen: udp, Advertise: udp, Admin: Admin{Disabled: true},
		Auth: Auth{Keys: map[string]string{devTenant: c.keys}}, TLS: TLS{CertFile: c.served.Cert, KeyFile: c.served.Key},
		Cluster: &own, Streams: StreamDefaults{SegmentBytes: 1 << 20},
	}}
	for _, f := range change {
		f(&b.cfg)
	}
	c.brokers[node] = b
	return b
}

func (b *memberBroker) start() *memberBroker {
	b.c.t.Helper()
	var err error
	ctx, cancel := context.WithTimeout(b.c.t.Context(), testWait)
	defer cancel()
	if b.broker, err = Start(ctx, b.cfg); err != nil {
		b.c.t.Fatalf("broker %s: %v", b.node, err)
	}
	b.c.t.Cleanup(b.stop)
	return b
}

func (b *memberBroker) stop() {
	if b.broker == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), testWait)
	defer cancel()
	if err := b.broker.Shutdown(ctx); err != nil {
		b.c.t.Errorf("shutdown of %s: %v", b.node, err)
	}
	b.broker = nil
}

func (b *memberBroker) client() *client.Client {
	t := b.c.t
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testWait)
	defer cancel()
	c, err := client.Dial(ctx, client.Config{
		Addrs: []string{b.cfg.Listen}, Tenant: devTenant, Token: b.c.token,
		CAFile: b.c.served.CA,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// settled waits until every group has that many voters and a leader.
func (c *testCluster) settled(voters int) {
	c.t.Helper()
	eventually(c.t, fmt.Sprintf("all groups with %d voters and a leader", voters), func() bool {
		for _, b := range c.brokers {
			if b.broker == nil {
				continue
			}
			for _, g := range b.broker.member.cluster.State().Groups() {
				n := 0
				for _, m := range g.Members {
					if m.Voter {
						n++
					}
				}
				if _, _, led := b.broker.member.cluster.Leader(g.ID); n != voters || !led {
					return false
				}
			}
		}
		return true
	})
}

func TestThreeBrokersServeOneStream(t *testing.T) {
	c := newTestCluster(t)
	a := c.add("a").start()
	b := c.add("b").start()
	z := c.add("z").start()
	c.settled(3)
	knows := func(b *memberBroker, name string) {
		eventually(t, b.node+" knows the stream", func() bool {
			_, err := b.broker.Admin().Stream(t.Context(), named(name))
			return err == nil
		})
	}
	for _, durability := range []string{"Quorum", "Durable", "Memory"} {
		t.Run(durability, func(t *testing.T) {
			name := "s-" + map[string]string{"Quorum": "q", "Durable": "d", "Memory": "m"}[durability]
			ctx, cancel := context.WithTimeout(t.Context(), testWait)
			defer cancel()
			st, created, err := a.broker.Admin().CreateStream(ctx, admin.StreamSpec{Name: named(name), Durability: durability, Shards: 2}, "")
			if err != nil || !created {
				t.Fatalf("created %v, %v", created, err)
			}
			knows(b, name)
			knows(z, name)
			t.Logf("%+v", st)
			for i, from := range []*memberBroker{a, b, z} {
				got, err := from.client().Publish(ctx, streamOf(name), client.Message{Payload: fmt.Append(nil, i)})
				if err != nil || got.Offset != uint64(i) {
					t.Fatalf("publish through %s: %+v, %v", from.node, got, err)
				}
			}
			for _, from := range []*memberBroker{a, b, z} {
				sub, err := from.client().Subscribe(ctx, streamOf(name), client.SubscribeConfig{Start: client.Earliest()})
				if err != nil {
					t.Fatalf("subscribe through %s: %v", from.node, err)
				}
				for i := range 3 {
					e, err := sub.Next(ctx)
					if err != nil || string(e.Payload) != fmt.Sprint(i) {
						t.Fatalf("record %d through %s: %q, %v", i, from.node, e.Payload, err)
					}
				}
				_ = sub.Close()
			}
			if err := b.broker.Admin().DeleteStream(ctx, named(name)); err != nil {
				t.Fatal(err)
			}
			if _, err := z.broker.Admin().Stream(ctx, named(name)); err == nil {
				eventually(t, "the stream is gone everywhere", func() bool {
					_, err := z.broker.Admin().Stream(ctx, named(name))
					return err != nil
				})
			}
		})
	}
}
