package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// usage is what a process has used and what it holds.
type usage struct {
	CPU        float64 `json:"cpu_s"`
	Switches   int64   `json:"switches"` // context switches, of both kinds
	RSS        int64   `json:"rss_bytes"`
	PeakRSS    int64   `json:"rss_peak_bytes"`
	Heap       uint64  `json:"heap_bytes"`
	Stacks     uint64  `json:"stack_bytes"`
	Mallocs    uint64  `json:"mallocs"`
	GCs        uint32  `json:"gcs"`
	Goroutines int     `json:"goroutines"`
}

// ownUsage looks at this process. It stops the world for a moment.
func ownUsage() usage {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u := usage{
		Heap: m.HeapInuse, Stacks: m.StackInuse, Mallocs: m.Mallocs, GCs: m.NumGC,
		Goroutines: runtime.NumGoroutine(),
	}
	u.CPU, u.Switches = ownCPU()
	u.RSS, u.PeakRSS = memory("self")
	return u
}

// memory reads a process's resident set from /proc, now and at its peak. Where
// there is no /proc they are 0.
func memory(pid string) (rss, peak int64) {
	b, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		return 0, 0
	}
	return parseStatus(b)
}

func parseStatus(b []byte) (rss, peak int64) {
	for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
		key, value, _ := strings.Cut(s.Text(), ":")
		kib, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		switch key {
		case "VmRSS":
			rss = kib << 10
		case "VmHWM":
			peak = kib << 10
		}
	}
	return rss, peak
}

// resetPeak makes the peak count from now. Kernels that refuse it leave the peak
// as it was, which is then too high and never too low.
func resetPeak() {
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
}

// ticks is the unit of CPU times in /proc: the kernel's interface fixes it.
const ticks = 100

// otherUsage looks at another process.
func otherUsage(pid int) (usage, error) {
	name := strconv.Itoa(pid)
	b, err := os.ReadFile("/proc/" + name + "/stat")
	if err != nil {
		return usage{}, fmt.Errorf("bench: usage of the broker: %w", err)
	}
	var u usage
	if u.CPU, err = parseStat(b); err != nil {
		return usage{}, fmt.Errorf("bench: usage of process %d: %w", pid, err)
	}
	u.RSS, u.PeakRSS = memory(name)
	return u, nil
}

// parseStat reads user and system time of a process. Its name, in parentheses, may
// hold anything.
func parseStat(b []byte) (cpu float64, err error) {
	i := bytes.LastIndexByte(b, ')')
	fields := strings.Fields(string(b[i+1:]))
	const utime, stime = 11, 12 // counted from the field after the name
	if i < 0 || len(fields) <= stime {
		return 0, fmt.Errorf("unexpected stat line %q", b)
	}
	for _, f := range []string{fields[utime], fields[stime]} {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("unexpected stat line: %w", err)
		}
		cpu += float64(n) / ticks
	}
	return cpu, nil
}
