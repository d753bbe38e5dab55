package demo

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"felix.dev/felix/broker/catalog"
)

// Millis is a duration that is a number of milliseconds in JSON.
type Millis time.Duration

// MarshalJSON writes milliseconds.
func (m Millis) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(m)/float64(time.Millisecond), 'f', 3, 64), nil
}

// Result is what happened under one policy.
type Result struct {
	Policy    string          `json:"policy"`
	Publisher PublisherResult `json:"publisher"`
	Readers   []ReaderResult  `json:"readers"` // the stalled one comes last
	Seen      Seen            `json:"seen"`
	Claims    []Claim         `json:"claims"`
}

// PublisherResult is the publisher's side.
type PublisherResult struct {
	Records     uint64   `json:"records"`
	Bytes       uint64   `json:"bytes"`
	Took        Millis   `json:"took_ms"`
	LongestWait Millis   `json:"longest_wait_ms"` // for the answer to one batch
	Refused     uint64   `json:"refused"`         // batches, each published again
	Reasons     []string `json:"reasons,omitempty"`
}

// ReaderResult is one reader's account.
type ReaderResult struct {
	Name     string `json:"name"`
	Received uint64 `json:"received"` // different records
	Expected uint64 `json:"expected"`
	Gaps     uint64 `json:"gaps"`    // offsets that did not come
	Repeats  uint64 `json:"repeats"` // offsets or records that came again
	Lagged   []Lag  `json:"lagged,omitempty"`
}

// Lag is an end for being too slow.
type Lag struct {
	ResumeFrom   uint64 `json:"resume_from"`   // as the broker said
	FirstMissing uint64 `json:"first_missing"` // what the reader had not got
	ReadBefore   uint64 `json:"read_before"`
}

// Seen is how the broker described the slowest reader while it stalled.
type Seen struct {
	State      string `json:"state"`
	LagRecords uint64 `json:"lag_records"`
}

// Claim is something that is promised, and whether it was so.
type Claim struct {
	Text string `json:"text"`
	Held bool   `json:"held"`
}

func (r *ReaderResult) complete() bool {
	return r.Received == r.Expected && r.Gaps == 0 && r.Repeats == 0
}

// Broken are the claims that did not hold.
func (r *Result) Broken() []string {
	var broken []string
	for _, c := range r.Claims {
		if !c.Held {
			broken = append(broken, c.Text)
		}
	}
	return broken
}

// check judges the claims of the policy.
func (r *Result) check() {
	claim := func(held bool, format string, args ...any) {
		r.Claims = append(r.Claims, Claim{Text: fmt.Sprintf(format, args...), Held: held})
	}
	healthy, stalled := r.Readers[:len(r.Readers)-1], r.Readers[len(r.Readers)-1]
	for _, h := range healthy {
		claim(h.complete() && len(h.Lagged) == 0, "%s got every record once, in order, and was never ended", h.Name)
	}
	claim(stalled.complete(), "the stalled reader has every record once, in order, at the end")

	switch catalog.OnFull(r.Policy) {
	case catalog.CatchUp:
		claim(len(stalled.Lagged) == 0, "the stalled reader was never ended")
		claim(r.Publisher.Refused == 0, "no publish was refused")
	case catalog.Block:
		claim(time.Duration(r.Publisher.LongestWait) >= publishWait*9/10, "the publisher waited for the stalled reader")
		claim(r.Publisher.Refused > 0 && slices.Equal(r.Publisher.Reasons, []string{"subscriber_blocking"}), "the publisher was told why: subscriber_blocking")
		claim(time.Duration(r.Publisher.Took) >= blockTimeout*9/10, "it waited no longer than the bound: then the reader was ended")
		r.claimExactEnd(claim, stalled)
	case catalog.DropNew:
		claim(r.Publisher.Refused == 0, "no publish was refused")
		r.claimExactEnd(claim, stalled)
	}
}

func (r *Result) claimExactEnd(claim func(bool, string, ...any), stalled ReaderResult) {
	ended := len(stalled.Lagged) == 1
	claim(ended, "the stalled reader was ended as lagged, once")
	claim(ended && stalled.Lagged[0].ResumeFrom == stalled.Lagged[0].FirstMissing && stalled.Lagged[0].ReadBefore < stalled.Expected,
		"the offset to resume at was exactly the first record that it had not got")
}
