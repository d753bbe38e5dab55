//go:build chaos

package chaos

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
)

// id is a record: number of a source. The zero id is none.
type id struct {
	source uint32
	number uint64 // from 1
}

func (i id) String() string { return fmt.Sprintf("record %d of source %d", i.number, i.source) }

const recordHead = 12

// pattern is longer than any record.
var pattern = func() []byte {
	b := make([]byte, 64<<10)
	for i := range b {
		b[i] = byte(i) ^ byte(i>>8)
	}
	return b
}()

// payload is a record as it is published, of size bytes at least recordHead.
func (i id) payload(size int) []byte {
	b := make([]byte, max(size, recordHead))
	binary.BigEndian.PutUint32(b, i.source)
	binary.BigEndian.PutUint64(b[4:], i.number)
	copy(b[recordHead:], pattern[i.number%256:])
	return b
}

// parse reads a payload back, every byte of it.
func parse(b []byte) (id, error) {
	if len(b) < recordHead {
		return id{}, fmt.Errorf("a record of %d bytes is none of ours", len(b))
	}
	i := id{binary.BigEndian.Uint32(b), binary.BigEndian.Uint64(b[4:])}
	if rest := b[recordHead:]; i.number == 0 || !bytes.Equal(rest, pattern[i.number%256:][:len(rest)]) {
		return i, fmt.Errorf("%s is damaged", i)
	}
	return i, nil
}

// outcome is what a publisher was told about a record.
type outcome uint8

const (
	unknown outcome = iota // nothing yet, nothing certain, or nothing was asked for
	acked
	refused // it is not stored
)

// place is a shard of a stream.
type place struct {
	stream string
	shard  uint32
}

func (p place) String() string { return fmt.Sprintf("%s/%d", p.stream, p.shard) }

// ledger is all that is known of a shard's records. Everybody writes into it, and
// whoever contradicts it has found a fault.
type ledger struct {
	place
	// forgets says that a killed broker may lose records that were acknowledged: the
	// stream is in memory.
	forgets bool

	mu sync.Mutex
	// All guarded by mu.
	at       map[uint64]id // what stands at an offset
	where    map[id]uint64
	outcomes map[id]outcome
	end      uint64 // after the last acknowledged offset
	acks     int    // how many there were
}

func newLedger(p place, forgets bool) *ledger {
	return &ledger{place: p, forgets: forgets, at: map[uint64]id{}, where: map[id]uint64{}, outcomes: map[id]outcome{}}
}

// ack notes that a record was acknowledged at an offset.
func (l *ledger) ack(i id, offset uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.outcomes[i] = acked
	l.acks++
	l.end = max(l.end, offset+1)
	return l.put("acknowledged", i, offset)
}

// settle notes the end of a record that was not acknowledged.
func (l *ledger) settle(i id, o outcome) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.outcomes[i] = o
	if at, ok := l.where[i]; ok && o == refused {
		return fmt.Errorf("%s: %s was refused and stands at offset %d", l.place, i, at)
	}
	return nil
}

// saw notes that a reader got a record.
func (l *ledger) saw(i id, offset uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.outcomes[i] == refused {
		return fmt.Errorf("%s: %s was refused and is read at offset %d", l.place, i, offset)
	}
	return l.put("read", i, offset)
}

// put checks an offset and a record against each other. The lock is held.
func (l *ledger) put(how string, i id, offset uint64) error {
	if before, ok := l.at[offset]; ok && before != i {
		return fmt.Errorf("%s: offset %d holds %s (%s), and held %s", l.place, offset, i, how, before)
	}
	if before, ok := l.where[i]; ok && before != offset {
		return fmt.Errorf("%s: %s is %s at offset %d, and was at %d", l.place, i, how, offset, before)
	}
	l.at[offset], l.where[i] = i, offset
	return nil
}

// ackedEnd is the offset after the last one that was acknowledged.
func (l *ledger) ackedEnd() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.end
}

// acknowledged counts the acknowledgements so far.
func (l *ledger) acknowledged() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.acks
}

// inOrder checks that every source's records stand in the order of their numbers, and
// that a source all of whose records were acknowledged (complete) lacks none up to its
// last.
func (l *ledger) inOrder(complete map[uint32]uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	offsets := make([]uint64, 0, len(l.at))
	for o := range l.at {
		offsets = append(offsets, o)
	}
	slices.Sort(offsets)
	last, count := map[uint32]uint64{}, map[uint32]uint64{}
	for _, o := range offsets {
		i := l.at[o]
		if i.number <= last[i.source] {
			return fmt.Errorf("%s: %s stands at offset %d, behind number %d", l.place, i, o, last[i.source])
		}
		last[i.source] = i.number
		count[i.source]++
	}
	for source, n := range complete {
		if count[source] != n {
			return fmt.Errorf("%s: source %d has %d records there, %d were acknowledged", l.place, source, count[source], n)
		}
	}
	return nil
}

// tally counts outcomes.
func (l *ledger) tally() (stored, ackedN, unknownN, refusedN int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range l.outcomes {
		switch o {
		case acked:
			ackedN++
		case refused:
			refusedN++
		case unknown:
			unknownN++
		}
	}
	return len(l.at), ackedN, unknownN, refusedN
}
