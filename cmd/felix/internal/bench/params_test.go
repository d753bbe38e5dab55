package bench

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func valid() params {
	return params{
		Scenario: scenarioFanout, Size: 256, Fanout: 10, Streams: 1, Publishers: 1, Inflight: 1, Window: 4 << 20,
		Durability: durabilityMemory, Fsync: fsyncAlways, OnFull: onFullDrop, Duration: seconds(time.Second),
	}
}

func TestParamsValidate(t *testing.T) {
	for _, c := range []struct {
		name string
		f    func(*params)
		want []string // parts of the error; none: valid
	}{
		{name: "valid", f: func(*params) {}},
		{name: "small record", f: func(p *params) { p.Size = 8 }, want: []string{"--size 8"}},
		{name: "large record", f: func(p *params) { p.Size = 16 << 20 }, want: []string{"--size"}},
		{name: "everybody stalled", f: func(p *params) { p.Stalled = 10 }, want: []string{"--stalled 10 of --fanout 10"}},
		{name: "too many publishers", f: func(p *params) { p.Publishers, p.Streams = 1000, 1000 }, want: []string{"1000000 are more"}},
		{name: "memory has no log", f: func(p *params) { p.OnFull = onFullCatchUp }, want: []string{"no log to catch up from"}},
		{name: "durable has", f: func(p *params) { p.OnFull, p.Durability = onFullCatchUp, durabilityDurable }},
		{name: "no room for the window", f: func(p *params) { p.Window = 1 << 30 }, want: []string{"--window"}},
		{name: "a cluster", f: func(p *params) { p.Durability, p.Brokers, p.Through = durabilityQuorum, 3, throughFollower }},
		{
			name: "a cluster without brokers", f: func(p *params) { p.Durability, p.Through = durabilityQuorum, "n1" },
			want: []string{"--brokers 0", `--through "n1"`},
		},
		{
			name: "nobody follows", f: func(p *params) { p.Durability, p.Brokers, p.Through = durabilityQuorum, 1, throughFollower },
			want: []string{"--through"},
		},
		{
			name: "an idle cluster of one", f: func(p *params) { p.Scenario, p.Fanout = scenarioIdleCluster, 0 },
			want: []string{"--durability memory"},
		},
		{
			name: "all at once",
			f: func(p *params) {
				p.Fanout, p.Rate, p.Duration, p.Durability, p.Fsync, p.OnFull = 0, -1, 0, "most", "never", "drop"
			},
			want: []string{"--fanout: want 1", "--rate: want 0", "--duration", `--durability "most"`, `--fsync "never"`, `--on-full "drop"`},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := valid()
			c.f(&p)
			err := p.Validate()
			if len(c.want) == 0 && err != nil {
				t.Error(err)
			}
			for _, w := range c.want {
				if err == nil || !strings.Contains(err.Error(), w) {
					t.Errorf("error %v, want %q", err, w)
				}
			}
		})
	}
}

func TestWindowAndQueue(t *testing.T) {
	for _, c := range []struct {
		size, window, queue int
		records, entries    int
	}{
		{size: 4096, window: 4 << 20, records: 1024, entries: 0},
		{size: 65536, window: 4 << 20, records: 64, entries: 0},
		{size: 1 << 20, window: 4 << 20, records: 16, entries: 0},
		{size: 256, window: 4 << 20, records: 16384, entries: 21845},
		{size: 256, window: 4 << 20, queue: 100, records: 16384, entries: 100},
	} {
		p := params{Size: c.size, Window: c.window, Queue: c.queue}
		if got := p.windowRecords(); got != c.records {
			t.Errorf("%+v: window of %d records", c, got)
		}
		if got := p.queueEntries(); got != c.entries {
			t.Errorf("%+v: queue of %d entries", c, got)
		}
	}
}

func TestSecondsAreNumbers(t *testing.T) {
	b, err := json.Marshal(seconds(1500 * time.Millisecond))
	if err != nil || string(b) != "1.5" {
		t.Errorf("%s, %v", b, err)
	}
}
