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

// place is where a feeder is. An idle one has no goroutine: ten thousand idle
// subscriptions cost their state and nothing else.
type place uint8

const (
	running  place = iota // in its goroutine
	parked                // in group.parked
	borrowed              // somebody serves it in its goroutine's stead
)

// park leaves the feeder to the next commit, or to poke, and says so; false: there is
// something to do already.
func (f *feeder) park() bool {
	g := f.group
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.put(f)
}

// poke has a feeder look around: its client is gone, or it was stopped.
func (f *feeder) poke() {
	g := f.group
	g.mu.Lock()
	defer g.mu.Unlock()
	if f.waiting != nil {
		f.waiting()
	}
	if f.place != parked { // whoever has it looks before it is parked
		return
	}
	i := slices.Index(g.parked, f)
	g.parked = slices.Delete(g.parked, i, i+1)
	g.waiting.Store(int32(len(g.parked)))
	f.place = running
	go f.run()
}

// put parks f if there is still nothing for it; what may call for it is read after
// f can be found, so that a commit or a poke in between is not missed. The caller
// holds mu and has f.
func (g *group) put(f *feeder) bool {
	f.place = parked
	g.parked = append(g.parked, f)
	g.waiting.Store(int32(len(g.parked)))
	if !f.sub.Changed() && f.w.Context().Err() == nil {
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
		if !idle || !g.put(f) {
			f.place = running
			go f.run()
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
