package bench

import (
	"os"
	"runtime"
	"testing"
)

func TestParseStatus(t *testing.T) {
	rss, peak := parseStatus([]byte("Name:\tfelix\nVmHWM:\t   2048 kB\nVmRSS:\t   1024 kB\nThreads:\t9\n"))
	if rss != 1<<20 || peak != 2<<20 {
		t.Errorf("rss %d, peak %d", rss, peak)
	}
	if rss, peak := parseStatus([]byte("nonsense")); rss != 0 || peak != 0 {
		t.Errorf("of nonsense: rss %d, peak %d", rss, peak)
	}
}

func TestParseStat(t *testing.T) {
	line := "42 (a) b (c)) S 1 42 42 0 -1 4194560 100 0 0 0 150 50 7 7 20 0 9 0 100 1000 10"
	cpu, err := parseStat([]byte(line))
	if err != nil || cpu != 2 {
		t.Errorf("cpu = %v, %v; want 2 s", cpu, err)
	}
	for _, bad := range []string{"", "42 felix S 1", "42 (felix) S 1 2", "42 (f) S 1 42 42 0 -1 4194560 100 0 0 0 x 50 7"} {
		if _, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestUsage(t *testing.T) {
	own := ownUsage()
	if own.Goroutines == 0 || own.Heap == 0 {
		t.Errorf("own usage is empty: %+v", own)
	}
	if runtime.GOOS != "linux" {
		return
	}
	if own.RSS == 0 || own.PeakRSS < own.RSS/2 {
		t.Errorf("own memory: %+v", own)
	}
	if _, err := otherUsage(os.Getpid()); err != nil {
		t.Error(err)
	}
	if _, err := otherUsage(-1); err == nil {
		t.Error("a process -1 has a usage")
	}
}
