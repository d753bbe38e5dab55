package replica

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"felix.dev/felix/broker/seglog"
	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/vfs/faultfs"
)

// history is one run of the model: what was acknowledged, and where.
type history struct {
	*bed
	rng   *rand.Rand
	keys  []ShardKey
	acked map[ShardKey]map[uint64]string
	next  map[ShardKey]uint64 // sequence of its producer
	last  map[ShardKey]string // its newest batch
}

// Whatever happens to replicas, in whatever order, what was acknowledged is on all of
// them at its offset, and they are the same.
func TestRandomHistories(t *testing.T) {
	seed, runs := rand.Uint64(), 6
	if s := os.Getenv("FELIX_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seed, runs = n, 1
	}
	for run := range uint64(runs) {
		t.Run(fmt.Sprint("seed ", seed+run), func(t *testing.T) {
			h := &history{
				bed: newBed(t, 3, nil), rng: rand.New(rand.NewPCG(seed+run, 3)),
				acked: map[ShardKey]map[uint64]string{}, next: map[ShardKey]uint64{}, last: map[ShardKey]string{},
			}
			h.lead(0)
			for i := range 3 {
				h.keys = append(h.keys, h.openShard(h.nodes[0], i, Opening{First: uint64(i), Spec: spec(testSpec{MaxBytes: 60 << 10})}))
				h.acked[h.keys[i]] = map[uint64]string{}
			}
			for range 150 {
				h.step()
			}
			h.finish()
		})
	}
}

func (h *history) leading() *node {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.leader < 0 {
		return nil
	}
	return h.nodes[h.leader]
}

// other is a node that does not lead; others is how many run and are not paused.
func (h *history) other() *node {
	for {
		if k := h.nodes[h.rng.IntN(len(h.nodes))]; k != h.leading() {
			return k
		}
	}
}

func (h *history) step() {
	k := h.leading()
	switch n := h.rng.IntN(100); {
	case n < 60:
		h.write(k)
	case n < 68:
		i := h.rng.IntN(len(h.nodes))
		h.nodes[i].pause(false)
		h.settle(h.nodes[i])
		h.whole(h.nodes[i])
		h.lead(i)
	case n < 74:
		h.other().pause(h.rng.IntN(2) == 0)
	case n < 80:
		h.settle(k)
		h.whole(k)
		k.snapshot()
	case n < 86:
		h.catchUp(k)
	case n < 92:
		h.cutPower()
	case n < 96:
		h.settle(k)
		k.g.proposeTrims()
	default:
		h.spoil()
	}
}

func (h *history) write(k *node) {
	key := h.keys[h.rng.IntN(len(h.keys))]
	p := &stream.Publish{Records: region(fmt.Sprint(h.rng.Uint64()), strings.Repeat("x", h.rng.IntN(3000)))}
	text := string(p.Records.Bytes)
	if h.rng.IntN(3) == 0 {
		p.HasProducer, p.Producer, p.Sequence = true, 1, h.next[key]
		if h.next[key] > 0 && h.rng.IntN(3) == 0 { // again
			p.Sequence--
			text = h.last[key]
			p.Records.Bytes = []byte(text)
		} else {
			h.next[key]++
			h.last[key] = text
		}
	}
	r := k.wait(k.begin(key, p))
	if r.Err != nil {
		h.t.Fatalf("publish: %v", r.Err)
	}
	if had, ok := h.acked[key][r.Offset]; ok && had != text {
		h.t.Fatalf("offset %d was given twice", r.Offset)
	}
	h.acked[key][r.Offset] = text
}

// catchUp has one that is behind take over what the leader has.
func (h *history) catchUp(k *node) {
	f := h.other()
	h.mu.Lock()
	behind := f.applied < k.manifestAt
	h.mu.Unlock()
	if behind {
		if err := f.install(k); err != nil {
			h.t.Fatalf("install: %v", err)
		}
	}
}

// cutPower takes from one that does not lead what it has not flushed.
func (h *history) cutPower() {
	f := h.other()
	f.pause(false)
	h.settle(f)
	h.whole(f)
	if h.rng.IntN(2) == 0 {
		f.snapshot()
	}
	image := f.fs.CrashImage([]faultfs.Policy{faultfs.Drop, faultfs.Random, faultfs.Keep}[h.rng.IntN(3)], h.rng.Uint64())
	f.stop()
	f.fs = image
	f.open()
}

// spoil damages a log of one that does not lead, as a reader there would find.
func (h *history) spoil() {
	f := h.other()
	for _, k := range h.nodes { // somebody is to have all
		k.pause(false)
	}
	h.settle()
	key := h.keys[h.rng.IntN(len(h.keys))]
	if f.shard(key).Info().LogBytes < 2000 {
		return
	}
	damage(h.t, f, key, 0, 200)
	s := f.g.find(key)
	var err error
	for at := s.log.Oldest(); at < s.log.Next() && err == nil; {
		var page []seglog.Record
		if page, _, err = s.log.Records(at, 1<<20, nil); err == nil {
			at = page[len(page)-1].Base + uint64(page[len(page)-1].Count)
		}
	}
	if bad, ok := errors.AsType[*seglog.CorruptionError](err); ok {
		s.damaged(bad)
	}
	h.whole(f)
}

// whole waits until nothing is being repaired: before, a node gives leadership away.
func (h *history) whole(k *node) {
	h.until("all shards to be whole", func() bool { return k.g.Status().Repairing == 0 })
}

func (h *history) finish() {
	for _, k := range h.nodes {
		k.pause(false)
	}
	h.settle()
	for _, k := range h.nodes {
		h.whole(k)
	}
	h.same(h.keys...)
	for _, key := range h.keys {
		for _, k := range h.nodes {
			oldest := k.shard(key).Oldest()
			have := map[string]bool{}
			for _, e := range k.events(key, oldest) {
				have[e] = true
			}
			for offset, text := range h.acked[key] {
				first := text[4 : 4+int(text[3])] // the first record, which is short
				if offset >= oldest && !have[fmt.Sprint(offset, " ", first)] {
					h.t.Errorf("%s: shard %s lacks what was acknowledged at %d", k.name, key, offset)
				}
			}
		}
	}
}
