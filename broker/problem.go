package broker

import (
	"errors"
	"fmt"
	"time"

	"felix.dev/felix/broker/metrics"
	"felix.dev/felix/broker/seglog"
	"felix.dev/felix/broker/vfs"
)

// problem is what keeps a shard from serving as it should, for people: what it is,
// and what they can do.
type problem struct {
	kind metrics.Problem
	what string
	do   string
	err  error
}

// advice is the problem without the error that was met.
func (p *problem) advice() string { return p.what + ": " + p.do }

func (p *problem) String() string { return fmt.Sprintf("%s (%v)", p.advice(), p.err) }

// inspectLogs is the first step with a log that is not as it should be.
const inspectLogs = "stop the broker and run 'felix inspect' on its data folder; docs/operations.md says how to go on"

func unopenedProblem(shard int, err error) *problem {
	return &problem{
		kind: metrics.ProblemUnavailable, what: fmt.Sprintf("shard %d cannot be opened, the stream is refused to clients", shard),
		do: inspectLogs, err: err,
	}
}

// damagedProblem is about acknowledged records that cannot be read; closed says that
// nothing is appended behind them.
func damagedProblem(err error, closed bool) *problem {
	p := &problem{
		kind: metrics.ProblemDamaged, what: "acknowledged records are damaged, readers end before them",
		do: inspectLogs, err: err,
	}
	if closed {
		p.what = "acknowledged records are damaged, readers end before them and publishes are refused"
	}
	return p
}

func poisonedProblem(err error) *problem {
	return &problem{
		kind: metrics.ProblemPoisoned, what: "a write to the disk failed, publishes are refused",
		do: "check the disk, then restart the broker, which opens the log anew", err: err,
	}
}

// refusedProblem is about appends that are refused since a time.
func refusedProblem(since time.Time, err error) *problem {
	p := &problem{kind: kindOfRefusal(err), err: err}
	at := since.UTC().Format(time.RFC3339)
	switch p.kind {
	case metrics.ProblemFull:
		p.what = "the disk is full, publishes are refused since " + at
		p.do = "free space, grow the volume or let streams keep less; it goes on by itself"
	case metrics.ProblemReadOnly:
		p.what = "the disk takes no writes, publishes are refused since " + at
		p.do = "make the file system writable; it goes on by itself"
	default:
		p.what = "the log takes no writes, publishes are refused since " + at
		p.do = "check the disk; it goes on by itself once a write succeeds"
	}
	return p
}

// kindOfRefusal says what kind of disk refuses a write of which nothing is left.
func kindOfRefusal(err error) metrics.Problem {
	switch {
	case errors.Is(err, seglog.ErrDiskFull), vfs.IsFull(err):
		return metrics.ProblemFull
	case errors.Is(err, seglog.ErrReadOnly), vfs.IsReadOnly(err):
		return metrics.ProblemReadOnly
	}
	return metrics.ProblemWrite
}
