package main

import (
	"errors"
	"testing"
	"time"
)

func TestJSONMetric(t *testing.T) {
	out := []byte("started\n{\"msgs_per_s\": 1}\nnoise {\"msgs_per_s\": 2}\n{\n  \"msgs_per_s\": 3.5,\n  \"run\": {\"size\": 256},\n  \"plot\": [\n  {\"msgs_per_s\": 4}\n  ],\n  \"name\": \"x\"\n}\ndone")
	for _, c := range []struct {
		key     string
		want    float64
		wantErr bool
	}{
		{key: "msgs_per_s", want: 3.5},
		{key: "run.size", want: 256},
		{key: "run.nothing", wantErr: true},
		{key: "msgs_per_s.deeper", wantErr: true},
		{key: "name", wantErr: true},
	} {
		t.Run(c.key, func(t *testing.T) {
			got, err := jsonMetric(c.key).extract(out, 0)
			if (err != nil) != c.wantErr || got != c.want {
				t.Errorf("got %v, %v; want %v, error %v", got, err, c.want, c.wantErr)
			}
		})
	}
	for _, out := range []string{"", "nothing here", " {\"indented\":1}", "{broken\n"} {
		if _, err := lastObject([]byte(out)); !errors.Is(err, errNoObject) {
			t.Errorf("lastObject(%q): %v", out, err)
		}
	}
}

func TestRegexpMetric(t *testing.T) {
	m, err := regexpMetric(`send=([0-9.]+)`)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := m.extract([]byte("a send=2.5 b"), 0); err != nil || got != 2.5 {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := m.extract([]byte("nothing"), 0); err == nil {
		t.Error("no error without a match")
	}
	for _, bad := range []string{"(", "nogroup", "(a)(b)"} {
		if _, err := regexpMetric(bad); err == nil {
			t.Errorf("%q: accepted", bad)
		}
	}
}

func TestCPUMetric(t *testing.T) {
	if got, err := cpuMetric().extract(nil, 1500*time.Millisecond); err != nil || got != 1.5 {
		t.Errorf("got %v, %v", got, err)
	}
}
