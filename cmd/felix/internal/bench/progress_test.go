package bench

import (
	"bytes"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		var n atomic.Int64
		p := &progress{out: &out}
		p.phase("fanout", 10*time.Second, n.Load)
		n.Store(1500)
		time.Sleep(progressEvery + time.Millisecond)
		p.done()
		for _, want := range []string{"fanout", "0.5 of 10s", "3k/s"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("no %q in %q", want, out.String())
			}
		}
		if !strings.HasSuffix(out.String(), "\r\033[K") {
			t.Errorf("the line stays: %q", out.String())
		}
		out.Reset()
		p.phase("short", time.Second, n.Load)
		time.Sleep(5 * time.Second)
		p.done()
		if out.Len() > 0 {
			t.Errorf("a line about a short run: %q", out.String())
		}
	})
}

func TestProgressOnlyOnTerminals(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/f")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p := newProgress(f)
	if p != nil {
		t.Error("a file is no terminal")
	}
	p.phase("x", time.Hour, nil) // a nil progress does nothing
	p.done()
}

func TestShort(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 999: "999", 1500: "1.5k", 2.5e6: "2.5M", 3e12: "3T"} {
		if got := short(v); got != want {
			t.Errorf("short(%v) = %q, want %q", v, got, want)
		}
	}
}
