package bench

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"time"
)

// A record is a header and a body. The body is a piece of a pattern that both
// sides make from the run's seed; which piece follows from the header. So a reader
// sees damage in any byte by comparing memory, which is cheaper than a checksum.
//
//	0   u64  sequence, from 0 for each publisher
//	8   u64  time at which it was due, in ns of the run's clock; 0: not stamped
//	16  u32  how much later than that it was sent, in ns (the largest value: that or more)
//	20  u16  run, so that records of another run are told apart
//	22  u16  publisher, counted over all streams
const headerLen = 24

// maxPublishers is what the header can tell apart.
const maxPublishers = math.MaxUint16 + 1

// patternSpan is how many different bodies there are.
const patternSpan = 1024

// stamp is when a record was due and how late it was sent. Its zero value means
// that nobody looked at the clock.
type stamp struct {
	due  time.Duration
	late time.Duration
}

// record is a header, read or to be written.
type record struct {
	seq       uint64
	publisher uint16
	stamp     stamp
}

// pattern writes and checks the records of one run. It is immutable.
type pattern struct {
	run   uint16
	size  int
	bytes []byte // the body of any record is a piece of it
}

func newPattern(seed uint64, size int) *pattern {
	rng := rand.New(rand.NewPCG(seed, uint64(size))) //nolint:gosec // a pattern, no secret
	b := make([]byte, size-headerLen+patternSpan)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return &pattern{run: uint16(rng.Uint32()), size: size, bytes: b}
}

// body is what follows the header of a record.
func (p *pattern) body(seq uint64, publisher uint16) []byte {
	at := (seq*37 + uint64(publisher)*101) % patternSpan
	return p.bytes[at : at+uint64(p.size-headerLen)]
}

// write makes the record in dst, which has the size of a record.
func (p *pattern) write(dst []byte, r record) {
	binary.BigEndian.PutUint64(dst, r.seq)
	binary.BigEndian.PutUint64(dst[8:], uint64(r.stamp.due))
	binary.BigEndian.PutUint32(dst[16:], uint32(min(r.stamp.late, math.MaxUint32)))
	binary.BigEndian.PutUint16(dst[20:], p.run)
	binary.BigEndian.PutUint16(dst[22:], r.publisher)
	copy(dst[headerLen:], p.body(r.seq, r.publisher))
}

// verdict is what a reader thinks of a payload.
type verdict uint8

const (
	good    verdict = iota
	foreign         // of another run or another program
	damaged         // ours, with other bytes than were written
)

func (p *pattern) read(payload []byte) (record, verdict) {
	if len(payload) < headerLen || binary.BigEndian.Uint16(payload[20:]) != p.run {
		return record{}, foreign
	}
	r := record{
		seq:       binary.BigEndian.Uint64(payload),
		publisher: binary.BigEndian.Uint16(payload[22:]),
		stamp: stamp{
			due:  time.Duration(binary.BigEndian.Uint64(payload[8:])),
			late: time.Duration(binary.BigEndian.Uint32(payload[16:])),
		},
	}
	if len(payload) != p.size || !bytes.Equal(payload[headerLen:], p.body(r.seq, r.publisher)) {
		return r, damaged
	}
	return r, good
}
