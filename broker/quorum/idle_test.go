package quorum

import (
	"syscall"
	"testing"
	"time"
)

// BenchmarkIdle says what nine groups of three brokers that do nothing cost, in one
// process and with the default timings: CPU seconds in a second. Run it with -benchtime 100x.
func BenchmarkIdle(b *testing.B) {
	c := prepare(b, 3, func(cfg *NodeConfig) { cfg.Timings = Timings{} })
	c.direct = true
	c.begin()
	for id := uint32(2); id <= 9; id++ {
		for _, h := range c.hosts {
			if _, err := h.node.Open(b.Context(), id, GroupConfig{Machine: h.c.world.machine(h.self()), Bootstrap: c.first}); err != nil {
				b.Fatal(err)
			}
		}
	}
	for id := uint32(1); id <= 9; id++ {
		until(b, "leaders", func() bool {
			for _, h := range c.hosts {
				if h.node.Group(id).State().Leading {
					return true
				}
			}
			return false
		})
	}
	// Spread over all, as the owner of groups does.
	for id := uint32(1); id <= 9; id++ {
		to := c.hosts[id%3]
		until(b, "leadership to move", func() bool {
			for _, h := range c.hosts {
				if g := h.node.Group(id); g.State().Leading && h != to {
					if err := g.Transfer(b.Context(), to.self()); err != nil {
						b.Log(id, err)
					}
				}
			}
			return to.node.Group(id).State().Leading
		})
	}
	syncs := func() (n uint64) {
		for _, h := range c.hosts {
			n += h.log.Stats().Syncs
		}
		return n
	}
	time.Sleep(2 * time.Second) // what was said last has been said
	before, synced, began := cpuTime(b), syncs(), time.Now()
	b.ResetTimer()
	for range b.N {
		time.Sleep(100 * time.Millisecond)
	}
	took := time.Since(began).Seconds()
	b.ReportMetric((cpuTime(b)-before).Seconds()/took, "cores")
	b.ReportMetric(float64(syncs()-synced)/took, "syncs/s")
}

func cpuTime(tb testing.TB) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
