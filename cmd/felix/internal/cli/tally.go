package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"felix.dev/felix/client"
	"felix.dev/felix/cmd/felix/internal/term"
)

// tally hands records to a publisher and counts what becomes of them. One goroutine of its own waits for the
// answers, in the order of the records; wait waits for it.
type tally struct {
	progress *term.Progress
	begin    time.Time
	pending  chan sent
	refused  chan struct{} // closed with the first failure
	done     chan struct{}

	// Written by the goroutine, read after wait.
	acked      int
	bytes      uint64 // of those
	failed     int
	first      error // of the failures
	offsets    bool
	low, high  uint64
	lastAnswer time.Time
}

// sent is a record that has no answer yet.
type sent struct {
	*client.Pending

	bytes int
}

func newTally(progress *term.Progress) *tally {
	t := &tally{
		progress: progress, begin: time.Now(), pending: make(chan sent, 1<<16),
		refused: make(chan struct{}), done: make(chan struct{}),
	}
	go t.collect()
	return t
}

// feed publishes the input. It returns when the input ends, when a record was refused (nil: collect knows the
// reason), or when ctx does.
//
// The goroutine that reads the input is not waited for: a read from a terminal or a pipe cannot be interrupted. It
// ends with its next line, or with the process.
func (t *tally) feed(ctx context.Context, p *client.Publisher, o *pubOptions) error {
	defer close(t.pending)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	messages := make(chan client.Message, 64)
	ended := make(chan error, 1)
	go func() {
		ended <- o.each(func(m client.Message) error {
			select {
			case messages <- m:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		close(messages)
	}()

	pace := newPacer(o.rate)
	for {
		select {
		case m, more := <-messages:
			if !more {
				return <-ended
			}
			if err := pace.wait(ctx); err != nil {
				return err
			}
			pending, err := p.Publish(ctx, m)
			if err != nil {
				return err
			}
			t.pending <- sent{pending, len(m.Payload)}
		case <-t.refused:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (t *tally) collect() {
	defer close(t.done)
	for p := range t.pending {
		// The publisher answers for every record within its own bound, so this needs no other.
		receipt, err := p.Wait(context.Background())
		t.lastAnswer = time.Now()
		if err != nil {
			if t.failed++; t.failed == 1 {
				t.first = err
				close(t.refused)
			}
			continue
		}
		t.acked++
		t.bytes += uint64(p.bytes)
		t.progress.Add(1)
		if !receipt.HasOffset {
			continue
		}
		if !t.offsets {
			t.offsets, t.low, t.high = true, receipt.Offset, receipt.Offset
		}
		t.low, t.high = min(t.low, receipt.Offset), max(t.high, receipt.Offset)
	}
}

// wait returns when every record has its answer.
func (t *tally) wait() { <-t.done }

func (t *tally) summary(stream client.Stream, o *pubOptions) string {
	took := max(t.lastAnswer.Sub(t.begin), 0)
	var b strings.Builder
	verb := "published"
	if o.publisher.Unacked {
		verb = "sent without acknowledgement"
	}
	fmt.Fprintf(&b, "%s %s (%s) to %s in %s", verb, term.Plural(t.acked, "record"), term.Bytes(t.bytes), showStream(stream.Namespace, stream.Name), term.Duration(took))
	switch keyed := o.keyed || o.separator != ""; {
	case !t.offsets || keyed: // keys spread over shards, each with offsets of its own
	case t.low == t.high:
		fmt.Fprintf(&b, ", offset %d", t.low)
	default:
		fmt.Fprintf(&b, ", offsets %d to %d", t.low, t.high)
	}
	if took >= time.Second && t.acked > 1 {
		fmt.Fprintf(&b, ", %.0f records/s", float64(t.acked)/took.Seconds())
	}
	return b.String()
}
