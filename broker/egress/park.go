package egress

import (
	"slices"
	"time"

	"felix.dev/felix/broker/stream"
)

const (
	// directBytes is the most that is written for a parked feeder without waking it:
	// what fits one packet, which quic-go copies and is done with.
	directBytes = 1200
	// directGap is the pause before a commit that makes it a lone one. Closer commits
	// wake their feeders, which then write what has gathered.
	directGap = 25 * time.Microsecond
)

// place is where a feeder is. Whoever moves it to running sends the wake token with
// it, so that a token is in the channel if and only if its feeder was woken.
type place uint8

const (
	running  place = iota // its goroutine has it
	parked                // in group.parked
	borrowed              // somebody serves it in its goroutine's stead
)

// park waits until there may be something to write; false: nobody wants it any more.
func (f *feeder) park() bool {
	g := f.group
	g.mu.Lock()
	here := g.put(f)
	g.mu.Unlock()
	if !here {
		return true
	}
	select {
	case <-f.wake:
		return true
	case <-f.sub.Stopped():
		f.unpark()
		return true
	case <-f.gone:
		f.unpark()
		return false
	}
}

// unpark takes the feeder back for its own goroutine.
func (f *feeder) unpark() {
	g := f.group
	g.mu.Lock()
	if f.place == parked {
		i := slices.Index(g.parked, f)
		g.parked = slices.Delete(g.parked, i, i+1)
		g.waiting.Store(int32(len(g.parked)))
		f.place = running
		g.mu.Unlock()
		return
	}
	f.wanted = f.place == borrowed
	g.mu.Unlock()
	<-f.wake // it was woken, or is borrowed and comes back
}

// put parks f if there is still nothing for it; the mark is read after f can be
// found, so that a commit in between is not missed. The caller holds mu and has f.
func (g *group) put(f *feeder) bool {
	f.place = parked
	g.parked = append(g.parked, f)
	g.waiting.Store(int32(len(g.parked)))
	if !f.sub.Changed() {
		return true
	}
	f.place = running
	g.parked = g.parked[:len(g.parked)-1]
	g.waiting.Store(int32(len(g.parked)))
	return false
}

// serve sees to the parked feeders after a commit: a small lone frame is written
// for them, otherwise they are woken.
func (g *group) serve() {
	now := time.Now().UnixNano()
	direct := now-g.last.Swap(now) > int64(directGap)
	g.mu.Lock()
	due := g.parked
	g.parked = nil
	g.waiting.Store(0)
	for _, f := range due {
		f.place = borrowed
	}
	g.mu.Unlock()
	woken := uint64(0)
	for _, f := range due {
		idle := direct && f.writeDirect()
		g.mu.Lock()
		if !idle || f.wanted || !g.put(f) {
			f.place, f.wanted = running, false
			f.wake <- struct{}{} // has room: one token for each move to running
			woken++
		}
		g.mu.Unlock()
	}
	g.lane.wakeups.Add(woken)
}

// writeDirect writes what is there for a borrowed feeder if QUIC takes it at once,
// and says whether nothing is left to do.
func (f *feeder) writeDirect() bool {
	p, ok := f.sub.Direct(directBytes)
	if !ok || f.w.TryWriteAll(p.Bytes) != nil {
		return false
	}
	f.sub.Advance(p)
	f.engine.wrote(len(p.Bytes), p.Records)
	_, status := f.sub.Next(directBytes, directBytes)
	return status == stream.Idle
}
