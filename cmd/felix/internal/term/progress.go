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
	w     io.Writer
	label string
	total int64
	now   func() time.Time
	begin time.Time

	mu   sync.Mutex
	done int64
	bar  *progressbar.ProgressBar // nil until it has appeared, and after Done
	over bool
}

// NewProgress makes a progress line on w for total records; total -1 means that nobody knows. If w is no terminal
// it never shows anything.
func NewProgress(w io.Writer, label string, total int64) *Progress {
	p := &Progress{w: w, label: label, total: total, now: time.Now, over: !IsTerminal(w)}
	p.begin = p.now()
	return p
}

// Add says that n more are done.
func (p *Progress) Add(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += int64(n)
	switch {
	case p.over:
	case p.bar != nil:
		_ = p.bar.Add(n) // it only fails beyond the total, which then was a guess
	case p.now().Sub(p.begin) >= quietFor:
		p.bar = progressbar.NewOptions64(p.total,
			progressbar.OptionSetWriter(p.w), progressbar.OptionSetDescription(p.label), progressbar.OptionShowIts(),
			progressbar.OptionShowCount(), progressbar.OptionSetItsString("records"), progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionClearOnFinish(), progressbar.OptionSetWidth(20), progressbar.OptionUseANSICodes(true))
		_ = p.bar.Add64(p.done) // as above
	}
}

// Done removes the line. Nothing is shown after it.
func (p *Progress) Done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		_ = p.bar.Clear() // a terminal that does not take this takes nothing else either
	}
	p.bar, p.over = nil, true
}
