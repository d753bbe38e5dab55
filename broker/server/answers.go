package server

import (
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"

	"felix.dev/felix/broker/wire"
)

// answerStream is the sending side of a control stream; *quic.Stream is one.
type answerStream interface {
	io.WriteCloser
	CancelWrite(quic.StreamErrorCode)
	SetWriteDeadline(time.Time) error
}

const (
	// keepAnswers is the largest buffer kept between two bursts of answers.
	keepAnswers = 32 << 10
	// unreadAnswers is how many bytes of answers may wait before a stream is read on.
	unreadAnswers = 128 << 10
)

// answers is the sending side of a control stream. Whoever commits a publish
// appends its answer and never waits; a goroutine that exists while there is
// something to write hands over all that has gathered in one Write. A client that
// does not read for the timeout is given up. A nil *answers belongs to a stream that
// is never answered and swallows everything.
type answers struct {
	out     answerStream
	limit   int           // of owed
	timeout time.Duration // of a Write
	total   *atomic.Int64 // owed answers of the whole server
	flush   func()        // the method, bound once
	stuck   func()        // called when the timeout has passed

	deadline time.Time // the one that is set on out; of whoever is in writeOut

	mu       sync.Mutex
	changed  sync.Cond
	pending  []byte
	spare    []byte
	owed     int // publishes taken whose answer QUIC does not have yet
	queued   int // how many of those are in pending
	appended uint64
	written  uint64 // <= appended
	flushing bool   // somebody is in writeOut
	err      error  // once set nothing is written and nothing is owed
}

func newAnswers(out answerStream, limit int, timeout time.Duration, total *atomic.Int64, stuck func()) *answers {
	a := &answers{out: out, limit: limit, timeout: timeout, total: total, stuck: stuck}
	a.changed.L = &a.mu
	a.flush = a.writeOut
	return a
}

// await waits while too many publishes are unanswered or too many answers unread:
// that is what stops reading a stream. It is called before anything is held for a
// frame; the session is the only one who reserves, so that there is room still when
// it comes to that.
func (a *answers) await() {
	if a == nil {
		return
	}
	a.mu.Lock()
	for a.err == nil && (a.owed >= a.limit || len(a.pending) >= unreadAnswers) {
		a.changed.Wait()
	}
	a.mu.Unlock()
}

// reserve notes that the answer to one more publish is owed.
func (a *answers) reserve() {
	if a == nil {
		return
	}
	a.mu.Lock()
	if a.err == nil {
		a.owed++
		a.total.Add(1)
	}
	a.mu.Unlock()
}

// ack answers a publish that reserve was called for.
func (a *answers) ack(k *wire.Ack) {
	if a == nil {
		return
	}
	a.mu.Lock()
	if a.err != nil {
		a.mu.Unlock()
		return
	}
	a.pending = wire.AppendAck(a.pending, k)
	a.settled()
}

// settle is ack for a publish that is answered in JSON.
func (a *answers) settle(m wire.Message) {
	if a == nil {
		return
	}
	a.mu.Lock()
	if a.err != nil {
		a.mu.Unlock()
		return
	}
	a.pending = wire.AppendMessage(a.pending, m)
	a.settled()
}

// settled unlocks mu and sees to the writing.
func (a *answers) settled() {
	a.queued++
	a.appended++
	start := !a.flushing
	a.flushing = true
	a.mu.Unlock()
	if start {
		go a.flush()
	}
}

// send writes an answer that was not reserved for and waits until QUIC has it.
func (a *answers) send(m wire.Message) error {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err != nil {
		return a.err
	}
	a.pending = wire.AppendMessage(a.pending, m)
	a.appended++
	mine := a.appended
	if !a.flushing {
		a.flushing = true
		a.mu.Unlock()
		a.writeOut()
		a.mu.Lock()
	}
	for a.err == nil && a.written < mine {
		a.changed.Wait()
	}
	return a.err
}

// writeOut writes until nothing is pending. The caller has set flushing.
func (a *answers) writeOut() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.pending) > 0 && a.err == nil {
		b, n, upTo := a.pending, a.queued, a.appended
		a.pending, a.queued, a.spare = a.spare[:0], 0, nil
		a.mu.Unlock()
		err := a.write(b)
		a.mu.Lock()
		if cap(b) <= keepAnswers {
			a.spare = b[:0]
		}
		if err != nil {
			a.failLocked(err)
			break
		}
		if a.err == nil {
			a.owed -= n
			a.total.Add(-int64(n))
		}
		a.written = upTo
		a.changed.Broadcast()
	}
	if cap(a.pending) > keepAnswers {
		a.pending = nil
	}
	a.flushing = false
	a.changed.Broadcast()
}

// write hands b over. The deadline is moved at most once in an eighth of the
// timeout: setting it costs as much as a small write.
func (a *answers) write(b []byte) error {
	if now := time.Now(); a.deadline.Sub(now) < a.timeout {
		a.deadline = now.Add(a.timeout + a.timeout/8)
		if err := a.out.SetWriteDeadline(a.deadline); err != nil {
			return err
		}
	}
	_, err := a.out.Write(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		a.stuck()
	}
	return err
}

// fail gives up the stream: what is owed stays unanswered.
func (a *answers) fail(err error) {
	if a == nil {
		return
	}
	a.mu.Lock()
	a.failLocked(err)
	a.mu.Unlock()
}

func (a *answers) failLocked(err error) {
	if a.err == nil {
		a.err = err
		a.total.Add(-int64(a.owed))
		a.owed, a.queued, a.pending, a.spare = 0, 0, nil, nil
	}
	a.changed.Broadcast()
}

// settleAll waits until everything owed is written. Nothing may be reserved any more.
func (a *answers) settleAll() {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.err == nil && a.owed > 0 {
		a.changed.Wait()
	}
}

// finish waits until everything owed is written and ends the sending side with a
// FIN. After a failure it resets the stream instead. Nothing may be reserved any
// more.
func (a *answers) finish() {
	if a == nil {
		return
	}
	a.mu.Lock()
	for a.flushing || (a.err == nil && a.owed > 0) {
		a.changed.Wait()
	}
	failed := a.err != nil
	a.mu.Unlock()
	if failed {
		a.out.CancelWrite(0)
		return
	}
	if a.out.Close() != nil { // the client cancelled it meanwhile
		a.out.CancelWrite(0)
	}
}
