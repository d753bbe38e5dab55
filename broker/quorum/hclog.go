package quorum

import (
	"context"
	"fmt"
	"io"
	"log" //nolint:depguard // hclog.Logger names it; nothing is logged through it
	"log/slog"

	"github.com/hashicorp/go-hclog"
)

// raftLog has raft log through slog, one level lower: what it calls an error is mostly
// a peer that is away, and what matters of the rest this package says itself. What is
// not enabled costs a comparison.
type raftLog struct {
	log  *slog.Logger
	args []any
}

var _ hclog.Logger = (*raftLog)(nil)

func levelOf(l hclog.Level) slog.Level {
	switch l {
	case hclog.Error:
		return slog.LevelWarn
	case hclog.Warn:
		return slog.LevelInfo
	case hclog.Info:
		return slog.LevelDebug
	default:
		return slog.LevelDebug - 4
	}
}

// Log implements hclog.Logger, as do all the methods below.
func (l *raftLog) Log(level hclog.Level, msg string, args ...any) {
	to := levelOf(level)
	if !l.log.Enabled(context.Background(), to) {
		return
	}
	for i, a := range args {
		if f, ok := a.(hclog.Format); ok && len(f) > 0 {
			args[i] = fmt.Sprintf(fmt.Sprint(f[0]), f[1:]...)
		}
	}
	l.log.Log(context.Background(), to, "raft: "+msg, args...)
}

func (l *raftLog) Trace(msg string, args ...any) { l.Log(hclog.Trace, msg, args...) }
func (l *raftLog) Debug(msg string, args ...any) { l.Log(hclog.Debug, msg, args...) }
func (l *raftLog) Info(msg string, args ...any)  { l.Log(hclog.Info, msg, args...) }
func (l *raftLog) Warn(msg string, args ...any)  { l.Log(hclog.Warn, msg, args...) }
func (l *raftLog) Error(msg string, args ...any) { l.Log(hclog.Error, msg, args...) }

func (l *raftLog) is(level hclog.Level) bool {
	return l.log.Enabled(context.Background(), levelOf(level))
}
func (l *raftLog) IsTrace() bool { return l.is(hclog.Trace) }
func (l *raftLog) IsDebug() bool { return l.is(hclog.Debug) }
func (l *raftLog) IsInfo() bool  { return l.is(hclog.Info) }
func (l *raftLog) IsWarn() bool  { return l.is(hclog.Warn) }
func (l *raftLog) IsError() bool { return l.is(hclog.Error) }

func (l *raftLog) ImpliedArgs() []any { return l.args }
func (l *raftLog) With(args ...any) hclog.Logger {
	return &raftLog{log: l.log.With(args...), args: append(append([]any{}, l.args...), args...)}
}
func (l *raftLog) Name() string                   { return "raft" }
func (l *raftLog) Named(string) hclog.Logger      { return l }
func (l *raftLog) ResetNamed(string) hclog.Logger { return l }
func (l *raftLog) SetLevel(hclog.Level)           {}
func (l *raftLog) GetLevel() hclog.Level          { return hclog.NoLevel }

func (l *raftLog) StandardLogger(*hclog.StandardLoggerOptions) *log.Logger {
	return slog.NewLogLogger(l.log.Handler(), slog.LevelDebug)
}
func (l *raftLog) StandardWriter(*hclog.StandardLoggerOptions) io.Writer { return io.Discard }
