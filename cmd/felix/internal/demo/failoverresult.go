package demo

import (
	"fmt"
	"io"
	"strings"
	"time"

	"felix.dev/felix/cmd/felix/internal/term"
)

// FailoverResult is what happened.
type FailoverResult struct {
	Brokers      int             `json:"brokers"`
	Published    uint64          `json:"published"`
	Acknowledged uint64          `json:"acknowledged"`
	Failed       uint64          `json:"failed"` // the publisher gave up
	Lost         uint64          `json:"lost"`   // the worst of all readers
	Repeated     uint64          `json:"repeated"`
	Readers      []CounterResult `json:"readers"`
	Kills        []Kill          `json:"kills"`
	LongestPause Millis          `json:"longest_pause_ms"` // between two acknowledgements of one publisher
	Claims       []Claim         `json:"claims"`
}

// CounterResult is one reader's account.
type CounterResult struct {
	Name      string `json:"name"`
	Delivered uint64 `json:"delivered"`
	Lost      uint64 `json:"lost"`
	Repeated  uint64 `json:"repeated"`
	Moves     int    `json:"moves"` // how often it went on elsewhere
}

// Kill is one death of a leader.
type Kill struct {
	Node     string `json:"node"`
	Leader   string `json:"leader"` // afterwards
	InFlight int    `json:"in_flight"`
	NextAck  Millis `json:"next_ack_ms"` // from the kill to the first acknowledgement of something published after it
}

// result counts it all.
func (f *failover) result() FailoverResult {
	r := FailoverResult{Brokers: f.cfg.Brokers, Kills: f.kills}
	for _, p := range f.publishers {
		published, acked, failed, longest := p.counts()
		r.Published += published
		r.Acknowledged += acked
		r.Failed += failed
		r.LongestPause = max(r.LongestPause, Millis(longest))
	}
	for _, c := range append(append([]*counter{}, f.readers...), f.after...) {
		one := CounterResult{Name: c.name, Lost: c.lost()}
		c.mu.Lock()
		one.Delivered, one.Repeated, one.Moves = c.received, c.repeated, c.moves
		c.mu.Unlock()
		r.Readers = append(r.Readers, one)
		r.Lost, r.Repeated = max(r.Lost, one.Lost), max(r.Repeated, one.Repeated)
	}
	r.check()
	return r
}

// Broken are the claims that did not hold.
func (r *FailoverResult) Broken() []string {
	return (&Result{Claims: r.Claims}).Broken()
}

func (r *FailoverResult) check() {
	claim := func(held bool, format string, args ...any) {
		r.Claims = append(r.Claims, Claim{Text: fmt.Sprintf(format, args...), Held: held})
	}
	claim(r.Acknowledged > 0, "records were acknowledged")
	claim(r.Failed == 0, "no publish has failed: the publishers sent again until they knew")
	claim(r.Lost == 0, "no acknowledged record was lost")
	claim(r.Repeated == 0, "no record was delivered twice")
	for _, c := range r.Readers {
		claim(c.Lost == 0 && c.Repeated == 0 && c.Delivered >= r.Acknowledged, "the reader %s got every record once, in order", strings.TrimPrefix(c.Name, "reader "))
	}
	for _, k := range r.Kills {
		claim(time.Duration(k.NextAck) <= ackAgain, "publishes were acknowledged again within %v of the end of broker %s", ackAgain, k.Node)
	}
}

// WriteFailover prints what happened.
func WriteFailover(w io.Writer, r FailoverResult, paint Paint) error {
	_, err := io.WriteString(w, failoverTable(r, paint))
	return err
}

// failoverTable is what happened, for people.
func failoverTable(r FailoverResult, paint Paint) string {
	count := func(n uint64) string {
		if n == 0 {
			return paint.Good("0")
		}
		return paint.Bad(fmt.Sprint(n))
	}
	t := term.NewTable("records acknowledged", fmt.Sprint(r.Acknowledged))
	for _, c := range r.Readers {
		moved := ""
		if c.Moves > 0 {
			moved = paint.Dim("  (went on elsewhere " + term.Plural(c.Moves, "time") + ")")
		}
		t.Row("delivered, "+c.Name, fmt.Sprint(c.Delivered)+moved)
	}
	t.Row("lost", count(r.Lost))
	t.Row("repeated", count(r.Repeated))
	for _, k := range r.Kills {
		t.Row("time without acks, "+k.Node+" killed", fmt.Sprintf("%s  %s", term.Duration(time.Duration(k.NextAck)),
			paint.Dim(fmt.Sprintf("(%d in flight; then %s led)", k.InFlight, k.Leader))))
	}
	t.Row("longest pause of a publisher", term.Duration(time.Duration(r.LongestPause)))
	if broken := len(r.Broken()); broken > 0 {
		t.Row("promises kept", paint.Bad(fmt.Sprintf("NO: %d of %d were not", broken, len(r.Claims))))
	} else {
		t.Row("promises kept", paint.Good(fmt.Sprintf("yes, all %d", len(r.Claims))))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d brokers, one stream that a majority keeps; its leader was killed %s while two publishers\nand two readers were at work.\n\n%s",
		r.Brokers, term.Plural(len(r.Kills), "time"), t)
	for _, text := range r.Broken() {
		fmt.Fprintf(&b, "%s %s\n", paint.Bad("NOT SO:"), text)
	}
	return b.String()
}
