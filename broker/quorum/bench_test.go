package quorum

import (
	"testing"
)

// BenchmarkPropose is entries through three brokers of one process, whose disks are in
// memory, with a number of them in flight.
func BenchmarkPropose(b *testing.B) {
	for _, bench := range []struct {
		name           string
		size, inFlight int
	}{{"256B/1", 256, 1}, {"4KiB/64", 4 << 10, 64}, {"256KiB/8", 256 << 10, 8}} {
		b.Run(bench.name, func(b *testing.B) {
			c := prepare(b, 3, func(cfg *NodeConfig) { cfg.Timings = Timings{} })
			c.direct = true
			c.begin()
			for _, h := range c.hosts {
				h.machine.forget = true
			}
			g := c.leader().group
			data := make([]byte, bench.size)
			b.SetBytes(int64(bench.size))
			b.ResetTimer()
			flying := make(chan *Proposal, bench.inFlight)
			for i := range b.N {
				if i >= bench.inFlight {
					if _, err := (<-flying).Wait(b.Context()); err != nil {
						b.Fatal(err)
					}
				}
				flying <- g.Propose(data)
			}
			for range min(b.N, bench.inFlight) {
				if _, err := (<-flying).Wait(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
