package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"felix.dev/felix/client"
	"felix.dev/felix/cmd/felix/internal/devcluster"
)

// cluster is brokers that are one cluster, each in a process of its own. It is not safe
// for concurrent use.
type cluster struct {
	access
	through string
	files   *devcluster.Cluster
	dir     string
	members []*member
	// sync is what a data sync of this disk takes, measured before the load.
	sync time.Duration
	// leader leads the stream of the run, "" if there are several streams.
	leader string
}

// member is one broker of a cluster.
type member struct {
	*process
	node string
	// begin and end frame the measured part, like measured's.
	begin, end seen
}

// seen is what is known of a member at a moment.
type seen struct {
	usage usage
	syncs float64 // data syncs until then
}

// balanceWithin bounds the wait for leaders to be spread over the brokers, which a cluster
// does by itself soon after its start. One that was not balanced in time is measured as it is.
const balanceWithin = 30 * time.Second

// startCluster runs a cluster whose configuration is that of `felix dev-cluster`: defaults. args is how the hidden
// command is called, dir where a folder for all is made.
func startCluster(ctx context.Context, p *params, args func(config, node string) ([]string, error), env []string, dir string) (_ *cluster, err error) {
	if dir, err = os.MkdirTemp(dir, "felix-bench-cluster-"); err != nil {
		return nil, fmt.Errorf("bench: cluster: %w", err)
	}
	c := &cluster{dir: dir, through: p.Through}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	if c.sync, err = probeSync(dir); err != nil {
		return nil, fmt.Errorf("bench: cluster: %w", err)
	}
	if c.files, err = devcluster.Prepare(ctx, devcluster.Config{Dir: dir, Brokers: p.Brokers, FreePorts: true}); err != nil {
		return nil, err
	}
	// A broker that joins waits for the others, so all are started at once.
	started := make([]*process, len(c.files.Brokers))
	var g errgroup.Group
	for i, b := range c.files.Brokers {
		g.Go(func() error {
			command, err := args(b.ConfigFile(), b.Name)
			if err != nil {
				return err
			}
			started[i], err = startProcess(ctx, command, env)
			return err
		})
	}
	err = g.Wait()
	for i, b := range c.files.Brokers {
		if started[i] != nil {
			c.members = append(c.members, &member{process: started[i], node: b.Name})
		}
	}
	if err != nil {
		return nil, err
	}
	if err := c.files.Settled(ctx); err != nil {
		return nil, err
	}
	if err := c.balanced(ctx); err != nil {
		return nil, err
	}
	c.cfg = client.Config{Addrs: c.files.Addrs(), Tenant: devcluster.Tenant, Token: c.files.Token, CAFile: c.files.CAFile}
	c.admin = newAdmin(c.files.Brokers[0].Admin, c.files.Token)
	for i, m := range c.members {
		m.admin = newAdmin(c.files.Brokers[i].Admin, c.files.Token)
	}
	return c, nil
}

// balanced has leaders spread, and waits for it: one that moves in the middle of a run spoils it. All of them go at once,
// while a cluster that is left to itself takes its time.
func (c *cluster) balanced(ctx context.Context) error {
	admin := c.files.HTTP(c.files.Brokers[0])
	if st, err := admin.ClusterStatus(ctx); err == nil {
		for _, g := range st.Groups {
			if g.Group != 0 && len(g.Target) > 0 && g.Leader != g.Target[0] {
				// One that is refused for now goes later, by itself.
				_ = admin.TransferLeader(ctx, g.Group, g.Target[0], fmt.Sprintf("bench-%d", g.Group))
			}
		}
	}
	for deadline := time.Now().Add(balanceWithin); time.Now().Before(deadline); {
		st, err := c.files.HTTP(c.files.Brokers[0]).ClusterStatus(ctx)
		if err == nil {
			leads := map[string]int{}
			for _, b := range c.files.Brokers {
				leads[b.Name] = 0
			}
			for _, g := range st.Groups {
				if g.Group != 0 {
					leads[g.Leader]++
				}
			}
			if spread(leads) <= 1 {
				return nil
			}
		}
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// spread is the difference between the most and the least.
func spread(counts map[string]int) int {
	least, most := -1, 0
	for _, n := range counts {
		most = max(most, n)
		if least < 0 || n < least {
			least = n
		}
	}
	return most - max(least, 0)
}

// streams makes the streams and, if there is one, finds the broker that the run is to go through.
func (c *cluster) streams(ctx context.Context, p *params) ([]client.Stream, error) {
	streams, err := c.access.streams(ctx, p)
	if err != nil || len(streams) != 1 {
		return streams, err
	}
	ctx, cancel := context.WithTimeout(ctx, balanceWithin)
	defer cancel()
	all, err := client.Dial(ctx, c.cfg)
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	defer func() { err = errors.Join(err, all.Close()) }()
	for {
		owners, err := all.ShardOwners(ctx, streams[0])
		if err == nil && len(owners) == 1 && owners[0].Addr != "" {
			c.leader = owners[0].NodeID
			c.cfg.Addrs = c.route(owners[0].Addr)
			return streams, nil
		}
		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			return nil, fmt.Errorf("bench: nobody leads %v: %w", streams[0], err)
		}
	}
}

// route is the address of the leader, or that of another broker.
func (c *cluster) route(leader string) []string {
	addrs := c.files.Addrs()
	at := slices.IndexFunc(addrs, func(a string) bool { return (a == leader) == (c.through == throughLeader) })
	return addrs[at : at+1]
}

// usage is the sum over all processes.
func (c *cluster) usage(ctx context.Context, m moment) (*usage, error) {
	var sum usage
	for _, b := range c.members {
		u, err := b.usage(ctx, m)
		if err != nil {
			return nil, fmt.Errorf("broker %s: %w", b.node, err)
		}
		sum.add(u)
		if m == momentBegin || m == momentEnd {
			syncs, err := b.syncs(ctx)
			if err != nil {
				return nil, err
			}
			b.end = seen{*u, syncs}
			if m == momentBegin {
				b.begin = b.end
			}
		}
	}
	return &sum, nil
}

func (u *usage) add(o *usage) {
	u.CPU += o.CPU
	u.Switches += o.Switches
	u.RSS += o.RSS
	u.PeakRSS += o.PeakRSS
	u.Heap += o.Heap
	u.Stacks += o.Stacks
	u.Mallocs += o.Mallocs
	u.GCs += o.GCs
	u.Goroutines += o.Goroutines
}

// Metrics that count data syncs of the log and of segments.
const (
	countCommits  = "felix_wal_commits_total"
	countLogSyncs = "felix_log_sync_seconds_count"
)

// syncs counts the data syncs that a broker has made.
func (m *member) syncs(ctx context.Context) (float64, error) {
	values, err := scrape(ctx, m.admin, countCommits, countLogSyncs)
	if err != nil {
		return 0, err
	}
	return values[countCommits] + values[countLogSyncs], nil
}

// Close ends the processes and removes everything.
func (c *cluster) Close() error {
	c.closeIdle()
	var g errgroup.Group
	for _, m := range c.members {
		g.Go(m.Close)
	}
	return errors.Join(g.Wait(), os.RemoveAll(c.dir))
}
