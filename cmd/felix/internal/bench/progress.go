package bench

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"felix.dev/felix/cmd/felix/internal/term"
)

const (
	progressEvery = 500 * time.Millisecond
	// progressAfter is how long a phase has to be for a line about it.
	progressAfter = 2 * time.Second
)

// progress keeps a line on a terminal up to date. A nil progress says nothing.
type progress struct {
	out  io.Writer
	stop chan struct{}
	wg   sync.WaitGroup
}

// newProgress is nil unless f is a terminal.
func newProgress(f *os.File) *progress {
	if !term.IsTerminal(f) {
		return nil
	}
	return &progress{out: f}
}

// phase begins a phase; count is what has been done so far, in all.
func (p *progress) phase(name string, d time.Duration, count func() int64) {
	p.done()
	if p == nil || d < progressAfter {
		return
	}
	stop, start, before := make(chan struct{}), time.Now(), count()
	p.stop = stop
	p.wg.Go(func() { p.run(name, d, start, before, count, stop) })
}

func (p *progress) run(name string, d time.Duration, start time.Time, last int64, count func() int64, stop <-chan struct{}) {
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	at := start
	for {
		select {
		case <-stop:
			fmt.Fprint(p.out, "\r\033[K")
			return
		case now := <-tick.C:
			n := count()
			rate := float64(n-last) / now.Sub(at).Seconds()
			last, at = n, now
			fmt.Fprintf(p.out, "\r\033[K%s  %4.1f of %v  %s/s", name, now.Sub(start).Seconds(), d, short(rate))
		}
	}
}

// done ends the phase and removes its line.
func (p *progress) done() {
	if p == nil || p.stop == nil {
		return
	}
	close(p.stop)
	p.wg.Wait()
	p.stop = nil
}

// short writes a number with three digits and a unit.
func short(v float64) string {
	for _, unit := range []string{"", "k", "M", "G"} {
		if v < 1000 {
			return fmt.Sprintf("%.3g%s", v, unit)
		}
		v /= 1000
	}
	return fmt.Sprintf("%.3gT", v)
}
