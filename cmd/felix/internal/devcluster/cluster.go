package devcluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"felix.dev/felix/broker"
	"felix.dev/felix/broker/admin"
)

// Tenant is the one that the token of a cluster may do everything in.
const Tenant = "dev"

const (
	defaultBrokers = 3
	maxBrokers     = 9
	defaultPort    = 5000
	// readyWithin bounds the wait for a cluster that starts, and stopWithin for one that stops.
	readyWithin = 60 * time.Second
	stopWithin  = 20 * time.Second
)

// Config shapes a cluster. Zero values are the defaults in brackets.
type Config struct {
	// Dir is where everything is kept, and found again next time. Required.
	Dir string
	// Brokers is how many there are (3).
	Brokers int
	// Port is the first broker's for clients; its admin has the next one, and other brokers use the one after. The other
	// brokers are ten further each (5000, or any that are free if one of these is not).
	Port int
	// FreePorts takes any ports that are free (false).
	FreePorts bool
	// Binary is felix (this one).
	Binary string
	// Change changes a broker's configuration before it is written (nothing).
	Change func(node string, cfg *broker.Config)
}

// Validate reports everything that is wrong.
func (c Config) Validate() error {
	var errs []error
	if c.Dir == "" {
		errs = append(errs, errors.New("a folder is needed"))
	}
	if c.Brokers < 0 || c.Brokers > maxBrokers {
		errs = append(errs, fmt.Errorf("%d brokers: want 1 to %d", c.Brokers, maxBrokers))
	}
	if c.Port < 0 || c.Port > 65535-10*maxBrokers {
		errs = append(errs, fmt.Errorf("port %d: want 1 to %d", c.Port, 65535-10*maxBrokers))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	return nil
}

// Cluster is the brokers, running or not.
type Cluster struct {
	Dir     string
	Brokers []*Broker
	// Token is for the tenant Tenant, CAFile what clients trust, and ContextFile has both for the command line.
	Token, CAFile, ContextFile string
}

// Prepare makes all files of a cluster. Nothing runs yet.
func Prepare(ctx context.Context, cfg Config) (*Cluster, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.Brokers = cmp.Or(cfg.Brokers, defaultBrokers)
	var err error
	if cfg.Binary == "" {
		if cfg.Binary, err = os.Executable(); err != nil {
			return nil, fmt.Errorf("cluster: %w", err)
		}
	}
	// Configuration files hold absolute paths, as brokers need not run where this process does.
	if cfg.Dir, err = filepath.Abs(cfg.Dir); err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	c := &Cluster{Dir: cfg.Dir, ContextFile: filepath.Join(cfg.Dir, "context.yaml")}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	for i := range cfg.Brokers {
		name := fmt.Sprintf("n%d", i+1)
		c.Brokers = append(c.Brokers, &Broker{Name: name, Dir: filepath.Join(cfg.Dir, name), binary: cfg.Binary})
	}
	if err := choosePorts(ctx, &cfg, c.Brokers); err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	if err := c.write(&cfg, time.Now()); err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	return c, nil
}

// Start starts all brokers and waits until each is ready to serve. If that fails those that were started are killed.
func (c *Cluster) Start(ctx context.Context) error {
	for _, b := range c.Brokers {
		if err := b.Start(); err != nil {
			c.Kill()
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	for _, b := range c.Brokers {
		group.Go(func() error { return b.Ready(ctx) })
	}
	if err := group.Wait(); err != nil {
		c.Kill()
		return fmt.Errorf("cluster: %w", err)
	}
	return nil
}

// Settled waits until every group of the cluster has its replicas and all are up to date. A new cluster begins with one broker, the
// others are taken in one after the other: until then one that ends may be the only one that has something.
func (c *Cluster) Settled(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		st, err := c.HTTP(c.Brokers[0]).ClusterStatus(ctx)
		if err == nil {
			if err = c.unsettled(&st); err == nil {
				return nil
			}
		}
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("cluster: not every group has its replicas yet: %w; %w", last, ctx.Err())
		}
	}
}

// unsettled says what is not as it should be.
func (c *Cluster) unsettled(st *admin.ClusterStatus) error {
	if st.Problem != "" || len(st.Brokers) < len(c.Brokers) || len(st.Groups) == 0 {
		return fmt.Errorf("%d brokers are known, %d groups (%s)", len(st.Brokers), len(st.Groups), st.Problem)
	}
	for _, g := range st.Groups {
		current := 0
		for _, m := range g.Members {
			if m.Voter && m.CaughtUp {
				current++
			}
		}
		if g.Leader == "" || current < min(st.Replicas, len(c.Brokers)) {
			return fmt.Errorf("group %d: leader %q, %d replicas are up to date", g.Group, g.Leader, current)
		}
	}
	return nil
}

// Stop asks all brokers to end and waits for them. Those that have not ended in time, or when ctx ends, are killed.
func (c *Cluster) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopWithin)
	defer cancel()
	var group errgroup.Group
	for _, b := range c.Brokers {
		group.Go(func() error { return b.Terminate(ctx) })
	}
	return group.Wait()
}

// Kill kills all brokers.
func (c *Cluster) Kill() {
	for _, b := range c.Brokers {
		b.Kill()
	}
}

// Addrs are the addresses for clients.
func (c *Cluster) Addrs() []string {
	addrs := make([]string, len(c.Brokers))
	for i, b := range c.Brokers {
		addrs[i] = b.Addr
	}
	return addrs
}

// Broker finds a broker by its name, nil if there is none.
func (c *Cluster) Broker(name string) *Broker {
	for _, b := range c.Brokers {
		if b.Name == name {
			return b
		}
	}
	return nil
}

// HTTP is a client of one broker's admin.
func (c *Cluster) HTTP(b *Broker) *admin.Client {
	return &admin.Client{BaseURL: "http://" + b.Admin, Token: c.Token, HTTP: oneRequest}
}

// oneRequest keeps no connection: brokers come and go.
var oneRequest = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
