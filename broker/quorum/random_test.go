package quorum

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"felix.dev/felix/broker/vfs/faultfs"
)

// TestRandomFaults: whatever happens to a minority, what was acknowledged is there once,
// what was refused is not, and all have applied the same. FELIX_SEED plays a run again,
// as far as goroutines let it.
func TestRandomFaults(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	if s, err := strconv.ParseUint(os.Getenv("FELIX_SEED"), 10, 64); err == nil {
		seed = s
	}
	steps := 25
	if testing.Short() {
		steps = 8
	}
	for _, n := range []int{3, 5} {
		t.Run(fmt.Sprint(n, " brokers"), func(t *testing.T) {
			t.Parallel()
			t.Logf("FELIX_SEED=%d", seed)
			c := newCluster(t, n, func(cfg *NodeConfig) {
				cfg.SnapshotEntries, cfg.TrailingBytes = 40, 512
				cfg.AppendTimeout, cfg.ProposeTimeout = time.Second, 3*time.Second
			})
			c.leader()
			chaos := &chaos{c: c, r: rand.New(rand.NewPCG(seed, uint64(n))), held: map[*host][]func(){}}
			writers := startWriters(c, 4)
			for range steps {
				chaos.step()
				time.Sleep(time.Duration(50+chaos.r.IntN(300)) * time.Millisecond)
			}
			chaos.heal()
			c.put("the last one")
			writers.stop()
			c.put("the very last one")
			c.settled()
			writers.check()
		})
	}
}

// chaos breaks things, of a minority at a time.
type chaos struct {
	c    *cluster
	r    *rand.Rand
	down []*host
	held map[*host][]func() // disks that hang, and how to let them go
}

func (x *chaos) pick() *host { return x.c.hosts[x.r.IntN(len(x.c.hosts))] }

func (x *chaos) step() {
	a, b := x.pick(), x.pick()
	switch what := x.r.IntN(12); what {
	case 0, 1:
		x.heal()
	case 2:
		x.c.nw.Cut(a.name, b.name)
	case 3:
		x.c.nw.CutOneWay(a.name, b.name)
	case 4:
		x.c.nw.Delay(a.name, b.name, time.Duration(x.r.IntN(200))*time.Millisecond, 50*time.Millisecond)
	case 5:
		x.c.nw.Reset(a.name, b.name)
	case 6:
		x.c.nw.Flaky(a.name, b.name, 30)
	case 7, 8, 9:
		if len(x.down)*2+2 > len(x.c.hosts) || !a.up() {
			return
		}
		x.down = append(x.down, a)
		var image *faultfs.FS // of the disk as it would be after a power cut
		if what == 9 {
			image = a.disk.CrashImage(faultfs.Random, x.r.Uint64())
		}
		x.release(a)
		switch what {
		case 7:
			a.stop()
		case 8:
			a.kill()
		default:
			a.kill()
			a.disk = image
		}
	case 10:
		if a.up() {
			_, release := a.disk.Hold(faultfs.OpDatasync, inWAL)
			x.held[a] = append(x.held[a], release)
		}
	default:
		if a.up() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			_ = a.group.Transfer(ctx, Server{}) // it may not lead
			cancel()
		}
	}
}

func (x *chaos) release(h *host) {
	for _, let := range x.held[h] {
		let()
	}
	delete(x.held, h)
}

func (x *chaos) heal() {
	for h := range x.held {
		x.release(h)
	}
	x.c.nw.HealAll()
	for _, h := range x.down {
		h.restart()
	}
	x.down = nil
}

// writers propose and remember what came of it.
type writers struct {
	c      *cluster
	stopIt chan struct{}
	wg     sync.WaitGroup

	mu      sync.Mutex
	acked   []string
	refused []string
	unknown int
}

func startWriters(c *cluster, n int) *writers {
	w := &writers{c: c, stopIt: make(chan struct{})}
	for i := range n {
		w.wg.Go(func() { w.write(i) })
	}
	return w
}

func (w *writers) write(id int) {
	for i := 0; ; i++ {
		select {
		case <-w.stopIt:
			return
		default:
		}
		g := w.c.leading(id + i)
		if g == nil {
			time.Sleep(5 * time.Millisecond)
			continue
		}
		text := fmt.Sprintf("writer %d, entry %d", id, i)
		_, err := g.Propose([]byte(text)).Wait(context.Background())
		w.mu.Lock()
		switch {
		case err == nil:
			w.acked = append(w.acked, text)
		case errors.Is(err, ErrOutcomeUnknown):
			w.unknown++
		default:
			w.refused = append(w.refused, text)
		}
		w.mu.Unlock()
		time.Sleep(time.Millisecond)
	}
}

func (w *writers) stop() {
	close(w.stopIt)
	w.wg.Wait()
}

func (w *writers) check() {
	w.c.t.Helper()
	w.c.t.Logf("%d acknowledged, %d refused, %d unknown", len(w.acked), len(w.refused), w.unknown)
	if len(w.acked) == 0 {
		w.c.t.Error("nothing was acknowledged")
	}
	texts := w.c.hosts[0].machine.texts()
	for _, text := range w.acked {
		if texts[text] != 1 {
			w.c.t.Errorf("%q was acknowledged and is there %d times", text, texts[text])
		}
	}
	for _, text := range w.refused {
		if texts[text] != 0 {
			w.c.t.Errorf("%q was refused and is there", text)
		}
	}
	for text, n := range texts {
		if n != 1 && text != "the last one" && text != "the very last one" {
			w.c.t.Errorf("%q is there %d times", text, n)
		}
	}
}
