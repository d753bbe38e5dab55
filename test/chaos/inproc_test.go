//go:build chaos

package chaos

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"felix.dev/felix/broker"
	"felix.dev/felix/broker/peer/faultnet"
)

// inproc is a broker in this process: its network between brokers, its disk and its clock can be disturbed.
type inproc struct {
	t    *testing.T
	cfg  broker.Config
	nw   *faultnet.Network
	disk *disk
	// clock is how far its clock is from the right one.
	clock *skew

	mu sync.Mutex
	// Guarded by mu: the broker, once it has started, and what ends its start.
	b       *broker.Broker
	stop    context.CancelFunc
	started chan struct{} // closed when the start is over; nil: it does not run
	err     error
}

// skew is a clock that is stepped.
type skew struct {
	mu sync.Mutex
	by time.Duration
}

func (s *skew) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Add(s.by)
}

func (s *skew) step(by time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.by += by
}

// newInproc is a cluster of brokers in this process, which run and serve, and the network between them.
func newInproc(t *testing.T, brokers int, seed uint64, change ...func(node string, c *broker.Config)) (*cluster, *faultnet.Network) {
	t.Helper()
	c, configs := prepare(t, brokers, change...)
	nw := faultnet.New(t, seed)
	for _, cfg := range configs {
		p := &inproc{t: t, nw: nw, disk: newDisk(), clock: &skew{}}
		node := nw.Node(cfg.NodeID)
		node.SetAddr(cfg.Cluster.Listen)
		cfg.Cluster.DialNet = node.Dial
		cfg.FS, cfg.Now = p.disk, p.clock.now
		log, err := os.Create(filepath.Join(filepath.Dir(cfg.DataDir), "broker.log"))
		if err != nil {
			t.Fatal(err)
		}
		cfg.Log = slog.New(slog.NewTextHandler(log, nil))
		p.cfg = cfg
		t.Cleanup(func() {
			p.disk.heal()
			p.killMember()
			_ = log.Close()
			if t.Failed() {
				showEnd(t, p.cfg.NodeID, log.Name())
			}
		})
		c.members = append(c.members, p)
	}
	c.startAll()
	c.untilInSync()
	return c, nw
}

// showEnd prints the end of a log.
func showEnd(t *testing.T, node, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Log(err)
		return
	}
	const end = 6 << 10
	t.Logf("the last words of broker %s:\n%s", node, b[max(0, len(b)-end):])
}

func (p *inproc) node() string       { return p.cfg.NodeID }
func (p *inproc) clientAddr() string { return p.cfg.Listen }
func (p *inproc) adminAddr() string  { return p.cfg.Admin.Listen }

func (p *inproc) running() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.started != nil
}

func (p *inproc) startMember() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.started != nil {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	started := make(chan struct{})
	p.stop, p.started = stop, started
	go func() {
		defer close(started)
		cfg := p.cfg
		own := *cfg.Cluster
		cfg.Cluster, cfg.Registry = &own, nil
		b, err := broker.Start(ctx, cfg)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.b, p.err = b, err
	}()
}

// killMember ends it without time for anything.
func (p *inproc) killMember() {
	_ = p.shutDown(time.Millisecond) // that it was not in order is meant
}

// endMember ends it in good order.
func (p *inproc) endMember() {
	p.t.Helper()
	if err := p.shutDown(patience); err != nil {
		p.t.Errorf("shut broker %s down: %v", p.node(), err)
	}
}

func (p *inproc) shutDown(within time.Duration) error {
	p.mu.Lock()
	started, stop := p.started, p.stop
	p.mu.Unlock()
	if started == nil {
		return nil
	}
	if within < time.Second {
		stop()
	}
	<-started
	stop()
	p.mu.Lock()
	b, err := p.b, p.err
	p.b, p.started = nil, nil
	p.mu.Unlock()
	if err != nil {
		return fmt.Errorf("it had not started: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	err = b.Shutdown(ctx)
	_ = b.Wait() // what it says is in the error
	return err
}

// inproc is a member in this process.
func (c *cluster) inproc(m member) *inproc {
	c.t.Helper()
	p, is := m.(*inproc)
	if !is {
		c.t.Fatalf("broker %s is not in this process", m.node())
	}
	return p
}
