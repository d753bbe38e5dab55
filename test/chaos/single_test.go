//go:build chaos

package chaos

import (
	"fmt"
	"math/rand/v2"
	"time"

	"felix.dev/felix/client"
	"felix.dev/felix/test/chaos/history"
)

// logf says when.
func (w *crowd) logf(format string, args ...any) {
	w.t.Helper()
	w.t.Logf("%s %s", time.Now().Format("15:04:05.000"), fmt.Sprintf(format, args...))
}

// underWay is a record on its way.
type underWay struct {
	note    history.Published
	pending *client.Pending
}

// underWay waits until every publisher has had acknowledgements from now on.
func (w *crowd) underWay() {
	w.t.Helper()
	w.mu.Lock()
	acks := w.acks
	w.mu.Unlock()
	seen := make([]int, len(acks))
	for i, a := range acks {
		seen[i] = a.get()
	}
	var last any
	w.c.until("every publisher is acknowledged again", func() bool {
		for i, a := range acks {
			if a.get() == seen[i] {
				last = fmt.Sprintf("publisher %d has %d acknowledgements", i, seen[i])
				return w.ctx.Err() != nil
			}
		}
		return true
	}, &last)
	w.check()
}

// letRun lets it go on for a random time.
func (w *crowd) letRun(rng *rand.Rand, least, most time.Duration) {
	w.t.Helper()
	timer := time.NewTimer(least + time.Duration(rng.Int64N(int64(most-least)+1)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.ctx.Done():
	}
	w.check()
}

// source is a new publisher to the first shard of a stream, of publishes that are entered one by one.
func (w *crowd) source(stream string) uint32 {
	return w.rec.Source(history.Source{Shard: history.Shard{Stream: stream}, Unordered: true})
}

// begin publishes a number of a source.
func (w *crowd) begin(p *client.Publisher, source uint32, number uint64) underWay {
	w.t.Helper()
	id := history.ID{Source: source, Number: number}
	u := underWay{note: w.rec.Publish(id)}
	var err error
	if u.pending, err = p.Publish(w.ctx, client.Message{Payload: id.Payload(history.Head)}); err != nil {
		u.note.Refused()
		w.t.Fatal(err)
	}
	return u
}

// settle enters what became of it.
func (w *crowd) settle(u underWay, r client.Receipt, err error) {
	w.told(u, r, err, &flow{}, &count{})
}

// burst is publish of a publisher that ends when stop is called, with all its publishes answered.
func (w *crowd) burst(f flow, rng *rand.Rand) (stop func()) {
	w.t.Helper()
	f.until = make(chan struct{})
	w.publish(f, rng)
	w.mu.Lock()
	mine := w.acks[len(w.acks)-1]
	w.mu.Unlock()
	return func() {
		w.mu.Lock()
		for i, a := range w.acks {
			if a == mine { // nobody waits for it any more
				w.acks = append(w.acks[:i:i], w.acks[i+1:]...)
				break
			}
		}
		w.mu.Unlock()
		close(f.until)
		mine.over.Wait()
	}
}
