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
	p.Add(10)
	p.Done()
	if out.Len() > 0 {
		t.Fatalf("a buffer is no terminal, and got %q", out.String())
	}

	now := time.Now()
	late := &lateWriter{w: &out, from: now.Add(quietFor), now: func() time.Time { return now }}
	p = newProgress(late, "reading", 100) // as if it were one
	p.Add(20)
	if out.Len() > 0 {
		t.Errorf("it appeared at once: %q", out.String())
	}
	now = now.Add(quietFor)
	p.Add(80) // the last is never held back for the next redraw
	if got := out.String(); !strings.Contains(got, "reading") || !strings.Contains(got, "100/100") {
		t.Errorf("after a while it says %q, want the label and 100/100", got)
	}
	p.Done()
	before := out.Len()
	p.Add(10)
	p.Done()
	if out.Len() != before {
		t.Errorf("it spoke after it was done: %q", out.String()[before:])
	}
}
