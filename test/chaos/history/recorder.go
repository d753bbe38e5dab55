package history

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Recorder takes down what happens. Its methods may be called from any goroutine.
type Recorder struct {
	begin time.Time
	acked atomic.Int64

	mu sync.Mutex
	// All guarded by mu.
	sources   map[uint32]Source
	next      uint32
	publishes []Publish
	readers   []*Reading
	finals    []Final
}

// NewRecorder begins a history.
func NewRecorder() *Recorder {
	return &Recorder{begin: time.Now(), sources: map[uint32]Source{}}
}

// Now is the time on the history's clock, which only goes forward.
func (r *Recorder) Now() int64 { return int64(time.Since(r.begin)) }

// Source adds a publisher and returns its number.
func (r *Recorder) Source(s Source) uint32 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next++
	r.sources[r.next] = s
	return r.next
}

// Published is a publish that has begun.
type Published struct {
	r *Recorder
	i int
}

// Publish notes that a publish begins.
func (r *Recorder) Publish(id ID) Published {
	now := r.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.publishes = append(r.publishes, Publish{ID: id, Call: now, Return: Never})
	return Published{r, len(r.publishes) - 1}
}

// Acked notes its offset.
func (p Published) Acked(offset uint64) { p.settle(Acked, offset) }

// Refused notes that the record is not stored.
func (p Published) Refused() { p.settle(Refused, 0) }

// Unknown notes that nobody knows.
func (p Published) Unknown() { p.settle(Unknown, 0) }

func (p Published) settle(o Outcome, offset uint64) {
	now := p.r.Now()
	p.r.mu.Lock()
	defer p.r.mu.Unlock()
	e := &p.r.publishes[p.i]
	e.Outcome, e.Offset = o, offset
	if o == Acked {
		p.r.acked.Add(1)
	}
	if o != Unknown { // what is unknown may still happen
		e.Return = now
	}
}

// AckCount counts the acknowledgements so far.
func (r *Recorder) AckCount() int64 { return r.acked.Load() }

// Reading is a reader that is at work.
type Reading struct {
	r *Recorder

	mu      sync.Mutex
	reader  Reader // guarded by mu
	stopped bool   // guarded by mu
}

// Reader adds a reader; Call, Return and Start are the caller's to fill in.
func (r *Recorder) Reader(reader Reader) *Reading {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := &Reading{r: r, reader: reader}
	r.readers = append(r.readers, d)
	return d
}

// Deliver notes an event.
func (d *Reading) Deliver(offset uint64, id ID, skipped, gap uint64) {
	now := d.r.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reader.Deliveries = append(d.reader.Deliveries, Delivery{At: now, Offset: offset, ID: id, Skipped: skipped, Gap: gap})
}

// Count is how many events there were.
func (d *Reading) Count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.reader.Deliveries)
}

// Stop notes that it reads no more.
func (d *Reading) Stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopped = true
}

// Stopped says whether it reads no more.
func (d *Reading) Stopped() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stopped
}

// Shard is what it reads.
func (d *Reading) Shard() Shard {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.reader.Shard
}

// Next is the offset after the last event, or where the reader has begun.
func (d *Reading) Next() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := len(d.reader.Deliveries); n > 0 {
		return d.reader.Deliveries[n-1].Offset + 1
	}
	return d.reader.Start
}

// Final adds what was read at the end.
func (r *Recorder) Final(f Final) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.finals = append(r.finals, f)
}

// History is a copy of what is known so far.
func (r *Recorder) History() History {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := History{Sources: maps.Clone(r.sources), Publishes: slices.Clone(r.publishes), Finals: slices.Clone(r.finals)}
	for _, d := range r.readers {
		d.mu.Lock()
		reader := d.reader
		reader.Deliveries = slices.Clone(reader.Deliveries)
		d.mu.Unlock()
		h.Readers = append(h.Readers, reader)
	}
	return h
}
