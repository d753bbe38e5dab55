package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseLine(t *testing.T) {
	for _, c := range []struct {
		name, out string
		want      metrics
		bad       bool
	}{
		{
			name: "quiclimit",
			out:  "quiclimit write=ring streams=10 frames/s=56804 MB/s=232.7 send_cpu_s/Mframe=14.16 lost%=0.101 cipher=TLS_AES_128_GCM_SHA256 gso=true\n",
			want: metrics{"streams": 10, "msgs_per_s": 56804, "mb_per_s": 232.7, "broker_cpu_s_per_mdeliveries": 14.16, "lost%": 0.101},
		},
		{
			name: "natsbench after a warning",
			out:  "natsbench: slow\nnatsbench pub durable=js-always tls=true inflight=64 msgs/s=2000 server_cpu_us/msg=140\n",
			want: metrics{"inflight": 64, "msgs_per_s": 2000, "broker_cpu_s_per_mdeliveries": 140},
		},
		{name: "nothing", out: "", bad: true},
		{name: "only words", out: "natsbench: stalled\n", bad: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := parseLine([]byte(c.out))
			if (err != nil) != c.bad {
				t.Fatalf("error %v", err)
			}
			if diff := cmp.Diff(got, c.want); diff != "" {
				t.Errorf("(-got +want)\n%s", diff)
			}
		})
	}
}

func TestParseReport(t *testing.T) {
	out := `fanout  1.0 of 2s
{"scenario":"fanout","msgs_per_s":10,"expected":7,"delivered":5,"slow":{"healthy_rate_kept":0.9,"baseline":{"msgs_per_s":11}},"gso":true}
`
	got, raw, err := parseReport([]byte(out))
	if err != nil {
		t.Fatal(err)
	}
	want := metrics{
		"msgs_per_s": 10, "expected": 7, "delivered": 5, "missing": 2,
		"slow.healthy_rate_kept": 0.9, "slow.baseline.msgs_per_s": 11,
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
	if len(raw) == 0 || raw[0] != '{' {
		t.Errorf("raw report %q", raw)
	}
	failover := "{\n \"lost\": 0,\n \"kills\": [{\"next_ack_ms\": 3}, {\"next_ack_ms\": 1}, {\"next_ack_ms\": 5}]\n}\n"
	if got, _, err = parseReport([]byte(failover)); err != nil {
		t.Fatal(err)
	}
	want = metrics{"lost": 0, "missing": 0, "next_ack_ms.median": 3, "next_ack_ms.least": 1, "next_ack_ms.most": 5}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("failover (-got +want)\n%s", diff)
	}
	for _, bad := range []string{"", "no object", "{broken\n"} {
		if _, _, err := parseReport([]byte(bad)); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}
