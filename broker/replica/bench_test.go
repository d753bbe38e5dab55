package replica

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"felix.dev/felix/broker/quorum"
	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/vfs"
)

// BenchmarkPublish publishes 256 B to a group of three brokers on this machine's disk,
// all in this process; fsync is what one flush of that disk costs meanwhile.
func BenchmarkPublish(b *testing.B) {
	for _, publishers := range []int{1, 64} {
		b.Run(fmt.Sprint(publishers), func(b *testing.B) {
			var entries atomic.Int64
			r := newRig(b, 3, b.TempDir(), func(n *quorum.NodeConfig, c *Config) {
				n.Timings = quorum.Timings{}
				c.Metrics.Proposed = func(int, int) { entries.Add(1) }
			})
			key := r.open(0, Opening{})
			s, _ := r.leader().g.Load().Shard(key)
			payload := string(make([]byte, 256))
			var left atomic.Int64
			left.Store(int64(b.N))
			var mu sync.Mutex
			var took []time.Duration
			var all sync.WaitGroup
			b.ResetTimer()
			for range publishers {
				all.Go(func() {
					c := make(chan stream.Result, 1)
					var own []time.Duration
					for left.Add(-1) >= 0 {
						began := time.Now()
						s.Publish(&stream.Publish{Records: region(payload), Done: func(r stream.Result) { c <- r }})
						if res := <-c; res.Err != nil {
							b.Error(res.Err)
							return
						}
						own = append(own, time.Since(began))
					}
					mu.Lock()
					took = append(took, own...)
					mu.Unlock()
				})
			}
			all.Wait()
			b.StopTimer()
			slices.Sort(took)
			if len(took) > 0 {
				b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
				b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
			}
			b.ReportMetric(float64(len(took))/b.Elapsed().Seconds(), "publishes/s")
			b.ReportMetric(float64(len(took))/float64(max(entries.Load(), 1)), "publishes/entry")
			b.ReportMetric(float64(flushTime(b).Microseconds()), "fsync-µs")
		})
	}
}

// flushTime is the median of a small write and its flush.
func flushTime(b *testing.B) time.Duration {
	f, err := vfs.OS.OpenFile(b.TempDir()+"/f", os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	buf := make([]byte, 1<<20)
	if _, err := f.WriteAt(buf, 0); err != nil {
		b.Fatal(err)
	}
	var took []time.Duration
	for i := range 100 {
		began := time.Now()
		if _, err := f.WriteAt(buf[:512], int64(i)*512); err != nil {
			b.Fatal(err)
		}
		if err := f.Datasync(); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return took[len(took)/2]
}
