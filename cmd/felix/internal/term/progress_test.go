package term

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestProgress(t *testing.T) {
	var out bytes.Buffer
	p := NewProgress(&out, "reading", 100)
	p.begin = p.begin.Add(-time.Hour)
	p.Add(10)
	if out.Len() > 0 {
		t.Fatalf("a buffer is no terminal, and got %q", out.String())
	}

	p.over = false // as if it were one
	p.now = func() time.Time { return p.begin }
	p.Add(10)
	if out.Len() > 0 {
		t.Errorf("it appeared at once: %q", out.String())
	}
	p.now = func() time.Time { return p.begin.Add(quietFor) }
	p.Add(10)
	if got := out.String(); !strings.Contains(got, "reading") || !strings.Contains(got, "30/100") {
		t.Errorf("after a while it says %q, want the label and 30/100", got)
	}
	p.Done()
	before := out.Len()
	p.Add(10)
	p.Done()
	if out.Len() != before {
		t.Errorf("it spoke after it was done: %q", out.String()[before:])
	}
}
