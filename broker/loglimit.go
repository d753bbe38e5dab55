package broker

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// limitLines is how many lines with the same message are logged in a window.
	limitLines  = 20
	limitWindow = time.Minute
	// limitMessages bounds what is remembered; messages are constants, so that this
	// is more than there are.
	limitMessages = 1000
)

// logLimit is a slog.Handler that lets a message through so many times a minute: a
// thousand readers that lag, or clients that retry with a bad token, are a storm that
// would hide everything else. The last line of a window says that more are left out,
// the first one after it how many were. Debug lines are not limited.
type logLimit struct {
	slog.Handler
	*logWindows
}

type logWindows struct {
	now func() time.Time

	mu   sync.Mutex
	seen map[string]*logWindow
}

type logWindow struct {
	until   time.Time
	lines   int
	leftOut int
}

func newLogLimit(h slog.Handler) logLimit {
	return logLimit{h, &logWindows{now: time.Now, seen: make(map[string]*logWindow)}}
}

// Handle implements slog.Handler.
func (l logLimit) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelInfo {
		return l.Handler.Handle(ctx, r)
	}
	attrs, ok := l.pass(r.Message)
	if !ok {
		return nil
	}
	if len(attrs) > 0 {
		r = r.Clone()
		r.AddAttrs(attrs...)
	}
	return l.Handler.Handle(ctx, r)
}

// pass says whether a line may be logged, and what it should say beside.
func (w *logWindows) pass(message string) ([]slog.Attr, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	s := w.seen[message]
	if s == nil {
		if len(w.seen) >= limitMessages {
			clear(w.seen)
		}
		s = &logWindow{}
		w.seen[message] = s
	}
	var attrs []slog.Attr
	if !now.Before(s.until) {
		if s.leftOut > 0 {
			attrs = append(attrs, slog.Int("leftOutBefore", s.leftOut))
		}
		*s = logWindow{until: now.Add(limitWindow)}
	}
	s.lines++
	switch {
	case s.lines > limitLines:
		s.leftOut++
		return nil, false
	case s.lines == limitLines:
		attrs = append(attrs, slog.Time("moreLeftOutUntil", s.until))
	}
	return attrs, true
}

// WithAttrs implements slog.Handler.
func (l logLimit) WithAttrs(attrs []slog.Attr) slog.Handler {
	return logLimit{l.Handler.WithAttrs(attrs), l.logWindows}
}

// WithGroup implements slog.Handler.
func (l logLimit) WithGroup(name string) slog.Handler {
	return logLimit{l.Handler.WithGroup(name), l.logWindows}
}
