package demo

import (
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// plain does not paint.
type plain struct{}

func (plain) Good(s string) string { return s }
func (plain) Bad(s string) string  { return "!" + s }
func (plain) Dim(s string) string  { return s }

// numbered is a record of a publisher.
func numbered(source, n uint64) []byte {
	b := make([]byte, 2*minSize)
	binary.BigEndian.PutUint64(b, source)
	binary.BigEndian.PutUint64(b[minSize:], n)
	return b
}

// A counter finds what is lost and what is repeated, of each publisher.
func TestCounter(t *testing.T) {
	publishers := []*numberer{{source: 1, published: 4, acked: 4}, {source: 2, published: 3, acked: 2}}
	tests := []struct {
		name           string
		records        [][]byte
		lost, repeated uint64
		complete       bool
	}{
		{"all", [][]byte{numbered(1, 1), numbered(2, 1), numbered(1, 2), numbered(2, 2), numbered(1, 3), numbered(1, 4)}, 0, 0, true},
		{"one more than was acked", [][]byte{numbered(1, 1), numbered(2, 1), numbered(1, 2), numbered(2, 2), numbered(1, 3), numbered(1, 4), numbered(2, 3)}, 0, 0, true},
		{"nothing", nil, 6, 0, false},
		{"the last is missing", [][]byte{numbered(1, 1), numbered(1, 2), numbered(1, 3), numbered(2, 1), numbered(2, 2)}, 1, 0, false},
		{"one is missing", [][]byte{numbered(1, 1), numbered(1, 3), numbered(1, 4), numbered(2, 1), numbered(2, 2)}, 1, 0, true},
		{"one comes twice", [][]byte{numbered(1, 1), numbered(1, 2), numbered(1, 3), numbered(1, 4), numbered(1, 3), numbered(2, 1), numbered(2, 2)}, 0, 1, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := &counter{next: map[uint32]uint64{}, publishers: publishers}
			for _, r := range tt.records {
				c.take(r)
			}
			if c.lost() != tt.lost || c.repeated != tt.repeated || c.has(publishers) != tt.complete {
				t.Errorf("lost %d, repeated %d, complete %v; want %d, %d, %v", c.lost(), c.repeated, c.has(publishers), tt.lost, tt.repeated, tt.complete)
			}
		})
	}
}

// What did not hold is said, and is an error of whoever looks.
func TestFailoverResult(t *testing.T) {
	good := FailoverResult{
		Brokers: 3, Published: 10, Acknowledged: 10, LongestPause: Millis(time.Second),
		Readers: []CounterResult{{Name: "reader through n2", Delivered: 10, Moves: 1}},
		Kills:   []Kill{{Node: "n1", Leader: "n2", InFlight: 64, NextAck: Millis(1200 * time.Millisecond)}},
	}
	tests := []struct {
		name   string
		spoil  func(r *FailoverResult)
		broken []string
	}{
		{"as promised", func(*FailoverResult) {}, nil},
		{"lost", func(r *FailoverResult) { r.Lost, r.Readers[0].Lost = 1, 1 }, []string{
			"no acknowledged record was lost", "the reader through n2 got every record once, in order",
		}},
		{"away too long", func(r *FailoverResult) { r.Kills[0].NextAck = Millis(11 * time.Second) }, []string{
			"publishes were acknowledged again within 10s of the end of broker n1",
		}},
		{"nothing happened", func(r *FailoverResult) { r.Acknowledged = 0 }, []string{"records were acknowledged"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := good
			r.Readers = append([]CounterResult{}, good.Readers...)
			r.Kills = append([]Kill{}, good.Kills...)
			tt.spoil(&r)
			r.check()
			if diff := cmp.Diff(tt.broken, r.Broken()); diff != "" {
				t.Errorf("broken (-want +got):\n%s", diff)
			}
			var out strings.Builder
			if err := WriteFailover(&out, r, plain{}); err != nil {
				t.Fatal(err)
			}
			wants := []string{"records acknowledged", "time without acks, n1 killed", "went on elsewhere 1 time", "yes, all"}
			if tt.broken != nil {
				wants = append([]string{"NOT SO: " + tt.broken[0]}, wants[:3]...)
			}
			for _, want := range wants {
				if !strings.Contains(strings.ToLower(out.String()), strings.ToLower(want)) {
					t.Errorf("it does not show %q:\n%s", want, out.String())
				}
			}
		})
	}
}

func TestFailoverConfig(t *testing.T) {
	if err := (FailoverConfig{}).Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	for _, cfg := range []FailoverConfig{{Brokers: 2}, {Kills: -1}, {For: time.Second}, {Kills: 3, For: 20 * time.Second}, {Size: 8}} {
		if err := cfg.Validate(); err == nil {
			t.Errorf("%+v was taken", cfg)
		}
	}
}
