package history

import (
	"sync"
	"testing"
)

func TestRecorder(t *testing.T) {
	r := NewRecorder()
	const sources, each = 4, 50
	var running sync.WaitGroup
	var log sync.Mutex
	records := map[uint64]ID{}
	reading := r.Reader(Reader{Name: "r", Shard: shard})
	for range sources {
		n := r.Source(Source{Shard: shard})
		running.Go(func() {
			for i := range uint64(each) {
				id := ID{n, i + 1}
				p := r.Publish(id)
				switch i % 10 {
				case 8:
					p.Refused()
				case 9:
					p.Unknown()
				default:
					log.Lock()
					offset := uint64(len(records))
					records[offset] = id
					p.Acked(offset)
					reading.Deliver(offset, id, 0, 0)
					log.Unlock()
				}
			}
		})
	}
	running.Wait()
	r.Final(Final{Shard: shard, Via: "n1", End: uint64(len(records)), Records: records})
	if got := Check(r.History()); len(got) > 0 {
		t.Errorf("got violations:\n%s", Report(got))
	}
	if n := r.AckCount(); n != sources*each*8/10 || reading.Count() != int(n) || reading.Next() != uint64(n) {
		t.Errorf("%d acks, %d delivered up to %d", n, reading.Count(), reading.Next())
	}
	t.Log(Tally(r.History()))
}

func TestPayload(t *testing.T) {
	for _, size := range []int{0, Head, Head + 1, 4096, 1 << 20, 2 << 20} {
		id := ID{7, uint64(size) + 1}
		b := id.Payload(size)
		if got, err := Parse(b); got != id || err != nil {
			t.Errorf("size %d: got %v, %v", size, got, err)
		}
		if len(b) > Head {
			b[len(b)-1] ^= 1
			if _, err := Parse(b); err == nil {
				t.Errorf("size %d: damage was not found", size)
			}
		}
	}
	if _, err := Parse(make([]byte, Head)); err == nil {
		t.Error("no record was taken for one")
	}
}
