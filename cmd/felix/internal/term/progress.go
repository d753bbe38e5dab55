package term

import (
	"io"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
)

// quietFor is how long something may take before a progress line is worth anybody's attention.
const quietFor = time.Second

// Progress is a line on a terminal that says how far something has come. It appears only once that has taken a
// while, and it is removed when it is done.
type Progress struct {
	mu  sync.Mutex
	bar *progressbar.ProgressBar // nil after Done, and if there is no terminal
	out *lateWriter
}

// lateWriter lets nothing through until a moment has come: the line is kept from the start, so that its rate is
// right, and only shown later.
type lateWriter struct {
	w       io.Writer
	from    time.Time
	now     func() time.Time
	written bool
}

func (l *lateWriter) Write(p []byte) (int, error) {
	if l.now().Before(l.from) {
		return len(p), nil
	}
	l.written = true
	return l.w.Write(p)
}

// NewProgress makes a progress line on w for total records; total -1 means that nobody knows. If w is no terminal
// it never shows anything.
func NewProgress(w io.Writer, label string, total int64) *Progress {
	if !IsTerminal(w) {
		return &Progress{}
	}
	return newProgress(&lateWriter{w: w, from: time.Now().Add(quietFor), now: time.Now}, label, total)
}

func newProgress(out *lateWriter, label string, total int64) *Progress {
	return &Progress{out: out, bar: progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(out), progressbar.OptionSetDescription(label), progressbar.OptionShowIts(),
		progressbar.OptionShowCount(), progressbar.OptionSetItsString("records"), progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionSetWidth(20), progressbar.OptionUseANSICodes(true), progressbar.OptionSetElapsedTime(false))}
}

// Add says that n more are done.
func (p *Progress) Add(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		_ = p.bar.Add(n) // it only fails beyond the total, which then was a guess
	}
}

// Done removes the line. Nothing is shown after it.
func (p *Progress) Done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil && p.out.written {
		_ = p.bar.Clear() // a terminal that does not take this takes nothing else either
	}
	p.bar = nil
}
