package bench

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Scenarios.
const (
	scenarioPublish = "publish"
	scenarioFanout  = "fanout"
	scenarioLatency = "latency"
	scenarioSlow    = "slow"
	scenarioIdle    = "idle"

	scenarioIdleCluster = "idle-cluster"
)

// Names that flags accept.
const (
	durabilityMemory  = "memory"
	durabilityDurable = "durable"
	durabilityQuorum  = "quorum"

	throughLeader   = "leader"
	throughFollower = "follower"

	fsyncAlways   = "always"
	fsyncInterval = "interval"

	onFullDrop    = "drop-new"
	onFullBlock   = "block"
	onFullCatchUp = "catch-up"
)

// seconds is a duration that JSON shows as a number of seconds.
type seconds time.Duration

// MarshalJSON implements json.Marshaler.
func (s seconds) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, "%g", time.Duration(s).Seconds()), nil
}

// params is what a run can be told. It is part of the report as it is.
type params struct {
	Scenario   string  `json:"scenario"`
	Size       int     `json:"size"`
	Batch      int     `json:"batch"` // records of a publish frame; 0: the client library decides
	Fanout     int     `json:"fanout"`
	Conns      int     `json:"conns"`
	Streams    int     `json:"streams"`
	Publishers int     `json:"publishers"`
	Inflight   int     `json:"inflight"`
	Rate       int     `json:"rate"`
	Acked      bool    `json:"acked"`
	Durability string  `json:"durability"`
	Fsync      string  `json:"fsync"`
	Brokers    int     `json:"brokers,omitempty"` // of the cluster of a quorum stream
	Through    string  `json:"through,omitempty"` // the one that clients connect to
	OnFull     string  `json:"on_full"`
	Queue      int     `json:"queue_entries"` // 0: the broker's default, or what the window needs
	Duration   seconds `json:"duration_s"`
	Warmup     seconds `json:"warmup_s"`
	Volume     int64   `json:"volume"` // publish at least so many bytes, whatever the duration
	Window     int     `json:"window"`
	Stalled    int     `json:"stalled"`
	Baseline   bool    `json:"baseline"`
	Procs      int     `json:"procs"` // GOMAXPROCS of the broker; 0: default
	Seed       uint64  `json:"seed"`
}

// Defaults of the broker and the client library that a run has to know.
const (
	defaultQueueEntries = 4096
	minWindowRecords    = 16
	maxWindowRecords    = 1 << 19 // the broker takes queues of twice as many entries
	maxSize             = 8 << 20
	maxBrokers          = 9
)

// UsageError is a command line that makes no sense. Trying again does not help.
type UsageError struct{ err error }

func (e *UsageError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *UsageError) Unwrap() error { return e.err }

// subscriptions is how many there are, stalled ones included.
func (p *params) subscriptions() int { return p.Fanout * p.Streams }

// leastFanout is 0 where nobody needs to read.
func (p *params) leastFanout() int {
	if p.Scenario == scenarioIdleCluster {
		return 0
	}
	return 1
}

// windowRecords is the window in records.
func (p *params) windowRecords() int { return max(minWindowRecords, p.Window/p.Size) }

// queueEntries is the bound of a subscriber's queue that the broker is asked for; 0
// leaves it at its default. A healthy subscriber's lag never passes the window, and
// each record may be an entry; a stalled one must not get more than it would
// without the bench, unless that is less.
func (p *params) queueEntries() int {
	if p.Queue == 0 && p.windowRecords() > defaultQueueEntries*3/4 {
		return p.windowRecords() * 4 / 3
	}
	return p.Queue
}

// Validate reports everything that is wrong at once.
func (p *params) Validate() error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if p.Size < headerLen || p.Size > maxSize {
		fail("--size %d: want %d to %d: a record carries %d bytes to be told by", p.Size, headerLen, maxSize, headerLen)
	}
	for _, c := range []struct {
		flag     string
		n, least int
	}{
		{"--batch", p.Batch, 0},
		{"--fanout", p.Fanout, p.leastFanout()},
		{"--conns", p.Conns, 0},
		{"--streams", p.Streams, 1},
		{"--publishers", p.Publishers, 1},
		{"--inflight", p.Inflight, 1},
		{"--rate", p.Rate, 0},
		{"--queue", p.Queue, 0},
		{"--window", p.Window, 1},
		{"--stalled", p.Stalled, 0},
		{"--procs", p.Procs, 0},
		{"--volume", int(p.Volume), 0},
		{"--duration", int(p.Duration), 1},
		{"--warmup", int(p.Warmup), 0},
	} {
		if c.n < c.least {
			fail("%s: want %d or more", c.flag, c.least)
		}
	}
	if n := p.Publishers * p.Streams; n > maxPublishers {
		fail("--publishers x --streams: %d are more than a record can name (%d)", n, maxPublishers)
	}
	if p.Stalled >= p.Fanout && p.Fanout > 0 {
		fail("--stalled %d of --fanout %d: somebody has to be healthy", p.Stalled, p.Fanout)
	}
	if p.Size >= headerLen && p.Window/p.Size > maxWindowRecords {
		fail("--window %d: more than %d records of %d bytes do not fit a subscriber's queue", p.Window, maxWindowRecords, p.Size)
	}
	for _, c := range []struct {
		flag, value string
		of          []string
	}{
		{"--durability", p.Durability, []string{durabilityMemory, durabilityDurable, durabilityQuorum}},
		{"--fsync", p.Fsync, []string{fsyncAlways, fsyncInterval}},
		{"--on-full", p.OnFull, []string{onFullDrop, onFullBlock, onFullCatchUp}},
	} {
		if !slices.Contains(c.of, c.value) {
			fail("%s %q: want one of %s", c.flag, c.value, strings.Join(c.of, ", "))
		}
	}
	if p.Durability == durabilityQuorum {
		if p.Brokers < 1 || p.Brokers > maxBrokers {
			fail("--brokers %d: want 1 to %d", p.Brokers, maxBrokers)
		}
		if p.Through != throughLeader && (p.Through != throughFollower || p.Brokers == 1) {
			fail("--through %q: want %s or, of several brokers, %s", p.Through, throughLeader, throughFollower)
		}
	} else if p.Scenario == scenarioIdleCluster {
		fail("--durability %s: a cluster is for %s streams", p.Durability, durabilityQuorum)
	}
	if p.OnFull == onFullCatchUp && p.Durability == durabilityMemory {
		fail("--on-full %s: a memory stream has no log to catch up from", onFullCatchUp)
	}
	return errors.Join(errs...)
}
