//go:build chaos

package chaos

import (
	"context"
	"slices"
	"time"

	"felix.dev/felix/broker/admin"
	"felix.dev/felix/client"
)

// untilReady waits until a broker says that it serves.
func (c *cluster) untilReady(m member) {
	c.t.Helper()
	var last any
	c.until("broker "+m.node()+" serves", func() bool {
		if p, is := m.(*process); is && p.over() {
			c.t.Fatalf("broker %s ended instead of serving: %v", m.node(), p.err)
		}
		ctx, cancel := context.WithTimeout(c.t.Context(), time.Second)
		defer cancel()
		r, err := c.http(m).Readiness(ctx)
		if last = any(r); err != nil {
			last = err
		}
		return err == nil && r.Ready
	}, &last)
}

// until polls for a condition. what is there when the time is up is shown.
func (c *cluster) until(what string, ok func() bool, last ...*any) {
	c.t.Helper()
	const long = 10 * time.Second
	begin := time.Now()
	for ; !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Since(begin) > patience {
			for _, l := range last {
				c.t.Logf("last: %+v", *l)
			}
			c.t.Fatalf("not within %s: %s", patience, what)
		}
	}
	if took := time.Since(begin); took > long {
		c.t.Logf("%s it took %v until %s", time.Now().Format("15:04:05.000"), took.Round(time.Millisecond), what)
	}
}

// leader waits until a running broker leads a shard that serves, and returns it.
func (c *cluster) leader(stream string, shard uint32, except ...member) member {
	c.t.Helper()
	var found member
	var last any
	c.until("somebody leads "+stream, func() bool {
		for _, m := range c.members {
			if !m.running() || slices.Contains(except, m) {
				continue
			}
			node, err := c.ownerAt(m, stream, shard)
			if last = node; err != nil {
				last = err
			}
			for _, l := range c.members {
				if err == nil && l.node() == node && l.running() && !slices.Contains(except, l) {
					found = l
					return true
				}
			}
		}
		return false
	}, &last)
	return found
}

// ownerAt asks one broker who leads.
func (c *cluster) ownerAt(m member, stream string, shard uint32) (string, error) {
	ctx, cancel := context.WithTimeout(c.t.Context(), 3*time.Second)
	defer cancel()
	cl, err := client.Dial(ctx, client.Config{Addrs: []string{m.clientAddr()}, Tenant: tenant, Token: c.token, CAFile: c.ca, DialTimeout: time.Second})
	if err != nil {
		return "", err
	}
	defer func() { _ = cl.Close() }() // it was asked
	owners, err := cl.ShardOwners(ctx, streamOf(stream))
	if err != nil || int(shard) >= len(owners) {
		return "", err
	}
	return owners[shard].NodeID, nil
}

// untilInSync waits until nobody is behind: every group has as many replicas as it should, and all have caught up.
func (c *cluster) untilInSync() {
	c.t.Helper()
	var last any
	c.until("everybody is in sync", func() bool {
		s, err := c.status()
		if last = any(s); err != nil {
			last = err
		}
		return err == nil && inSync(&s, len(c.members))
	}, &last)
}

// status asks somebody who is running, statusAt one of them.
func (c *cluster) status() (admin.ClusterStatus, error) {
	c.t.Helper()
	for _, m := range c.members {
		if m.running() {
			return c.statusAt(m)
		}
	}
	c.t.Fatal("nobody is running")
	return admin.ClusterStatus{}, nil
}

func (c *cluster) statusAt(m member) (admin.ClusterStatus, error) {
	ctx, cancel := context.WithTimeout(c.t.Context(), 5*time.Second)
	defer cancel()
	return c.http(m).ClusterStatus(ctx)
}

func inSync(s *admin.ClusterStatus, brokers int) bool {
	for _, b := range s.Brokers {
		if !b.Up || !b.InSync {
			return false
		}
	}
	for _, g := range s.Groups {
		voters := 0
		for _, m := range g.Members {
			if !m.CaughtUp {
				return false
			}
			if m.Voter {
				voters++
			}
		}
		if g.Leader == "" || voters < min(s.Replicas, brokers) {
			return false
		}
	}
	return s.Problem == "" && len(s.Brokers) == brokers && len(s.Groups) > 0
}
