package client

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// run is the lane's goroutine: it gets a stream whenever there is something to send, and serves it.
func (l *lane) run() {
	ctx := l.p.life
	defer l.settleRest()
	r := newRetry()
	for l.awaitWork(ctx) {
		if l.backOff(ctx, r) != nil {
			return
		}
		st, err := l.connect(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return
			}
			l.connectFailed(err)
			continue
		}
		l.serve(ctx, st)
		l.streamOver(st)
	}
}

// settleRest settles what is left when the publisher is given up.
func (l *lane) settleRest() {
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	l.finishAll(ErrClosed)
}

// awaitWork waits until there is a batch. It returns false if there will be none.
func (l *lane) awaitWork(ctx context.Context) bool {
	for {
		l.p.mu.Lock()
		work, over := len(l.queue) > 0, l.p.closed
		l.parked = !work && !over
		l.p.mu.Unlock()
		switch {
		case ctx.Err() != nil:
			return false
		case work:
			return true
		case over:
			return false
		}
		select {
		case <-l.wake:
		case <-ctx.Done():
		}
	}
}

// backOff waits after failures.
func (l *lane) backOff(ctx context.Context, r *retry) error {
	l.p.mu.Lock()
	failures, pause := l.failures, l.pause
	l.pause = 0
	l.p.mu.Unlock()
	if failures == 0 {
		r.reset()
		return nil
	}
	return r.wait(ctx, pause)
}

// connectFailed decides about what is waiting. Without sending again there is no use in keeping it: the caller is
// told within one round over the brokers. Otherwise it waits for the next round, up to its time.
func (l *lane) connectFailed(err error) {
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	l.failures++
	l.trouble, l.pause = err, askedWait(err)
	if l.p.cfg.resends() && retryable(err) {
		return
	}
	l.finishAll(err)
}

// serve writes and reads until the stream is over.
func (l *lane) serve(ctx context.Context, st *laneStream) {
	l.p.mu.Lock()
	l.stream, l.next, l.inflight, l.late, l.leaving = st, 0, 0, 0, nil
	l.p.mu.Unlock()
	stop := context.AfterFunc(ctx, func() { st.fail(ErrClosed) })
	defer stop()
	var reading sync.WaitGroup
	reading.Go(func() { st.fail(l.readAnswers(st)) })
	if err := l.write(st); err != nil {
		// A broker that stops reading may have said why: the reader is left a moment to find out.
		st.s.CancelWrite(0)
		_ = st.s.SetReadDeadline(time.Now().Add(lastWords)) // fails only if the stream is closed
		reading.Wait()
		return
	}
	l.finishStream(st)
	reading.Wait()
}

// lastWords bounds the wait for the reason when a stream cannot be written to any more.
const lastWords = time.Second

// write is the writer's loop. It returns nil when the publisher is closed and everything is answered.
func (l *lane) write(st *laneStream) error {
	p := l.p
	var out []byte
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		p.mu.Lock()
		now := time.Now()
		from := l.base + uint64(l.next)
		out = l.take(out[:0], now)
		to := l.base + uint64(l.next)
		if len(out) > 0 {
			l.writing = now
			p.mu.Unlock()
			_, err := st.s.Write(out)
			if cap(out) > 4*maxWrite {
				out = nil
			}
			l.wrote(from, to, err)
			if err != nil {
				return err
			}
			continue
		}
		if p.closed && len(l.queue) == 0 {
			p.mu.Unlock()
			return nil
		}
		if why := l.leaving; why != nil && l.inflight == 0 {
			p.mu.Unlock()
			st.fail(&restart{why})
			return st.err
		}
		wait := l.wait(now)
		l.parked = true
		p.mu.Unlock()
		linger := timer.C
		if wait < 0 {
			linger = nil
		} else {
			timer.Reset(wait)
		}
		select {
		case <-l.wake:
			// Those who are about to publish in the same moment get into the same batch.
			runtime.Gosched()
		case <-linger:
		case <-st.dead:
			return st.err
		}
	}
}

// wrote notes the end of a Write of the batches with ids in [from, to).
func (l *lane) wrote(from, to uint64, err error) {
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	l.parked = false
	l.writing = time.Time{}
	if !l.p.cfg.Unacked || err != nil {
		return
	}
	l.failures = 0
	for id := from; id < to; id++ {
		if b := l.find(id); b != nil {
			l.finish(b, nil)
		}
	}
}

// streamOver decides about what was sent and has no answer.
func (l *lane) streamOver(st *laneStream) {
	p := l.p
	if left := l.settleStream(st.addr, st.err); left > 0 && p.life.Err() == nil {
		p.client.log.Warn("lost a publish stream", "broker", st.addr, "stream", p.stream.String(),
			"batches", left, "error", st.err)
	}
}

// settleStream returns how many batches were not answered when the stream ended.
func (l *lane) settleStream(addr string, why error) int {
	p := l.p
	p.mu.Lock()
	defer p.mu.Unlock()
	l.stream, l.trouble = nil, why
	switch {
	case movesOver(why):
		l.addr = p.client.pool.elsewhere(addr)
	case !isA[*redirect](why):
		l.addr = "" // whichever broker is there
	}
	waiting := len(l.unfinished(len(l.queue)))
	if waiting > 0 && !isA[*redirect](why) {
		l.failures++
	}
	if l.draining {
		l.drainedByLoss(why)
	}
	if !p.cfg.resends() {
		for _, b := range l.unfinished(l.next) {
			l.finish(b, unknownOutcome(why))
		}
	}
	l.next, l.inflight = 0, 0
	return waiting
}
