package stream

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// smallQueue is B01's: 8 entries.
var smallQueue = Queue{Entries: 8, Bytes: 64 << 10}

// DropNew: what was within the bound is delivered, then the exact offset is told.
func TestDropNewEndsAtTheFirstDroppedOffset(t *testing.T) {
	for name, l := range map[string]*fakeLog{"durable": {auto: true}, "memory": nil} {
		t.Run(name, func(t *testing.T) {
			s := openShard(t, Config{Queue: smallQueue}, l)
			sub := subscribe(t, s, offered(1))
			mustPublish(t, s, "0")
			p, _ := sub.Next(1, 1) // a write under way
			for i := 1; i < 20; i++ {
				mustPublish(t, s, fmt.Sprint(i))
			}
			sub.Advance(p)
			got, st := drain(t, sub)
			if len(got) != 8 || got[7].Offset != 8 {
				t.Errorf("delivered after the stall: %v, want 1..8: the 8 entries behind the write under way", got)
			}
			if st != Ended {
				t.Fatalf("status %v, want ended", st)
			}
			if d := cmp.Diff(End{Reason: EndLagged, Next: 9}, sub.End()); d != "" {
				t.Errorf("end (-want +got):\n%s", d)
			}
			rest, _ := drain(t, subscribe(t, s, from(2, offered(0), 9)))
			if len(rest) != 11 || rest[0].Offset != 9 {
				t.Errorf("resume at 9: %v", rest)
			}
		})
	}
}

// A client that cannot be told jumps to the tail: the jump is the drop, and counted.
func TestDropNewJumpsForOldClients(t *testing.T) {
	s := openShard(t, Config{Queue: smallQueue}, nil)
	sub := subscribe(t, s, SubscribeOptions{ID: 1, Offsets: true})
	mustPublish(t, s, "0")
	p, _ := sub.Next(1, 1)
	for i := 1; i < 20; i++ {
		mustPublish(t, s, fmt.Sprint(i))
	}
	sub.Advance(p)
	got, st := drain(t, sub)
	if len(got) != 8 || st != Idle {
		t.Errorf("got %v, status %v", got, st)
	}
	mustPublish(t, s, "20")
	got, _ = drain(t, sub)
	if d := cmp.Diff([]event{{20, "20", 0}}, got); d != "" {
		t.Errorf("after the jump (-want +got):\n%s", d)
	}
	if i := sub.Info(); i.Dropped != 11 || i.Delivered != 10 {
		t.Errorf("dropped %d delivered %d, want 11 and 10", i.Dropped, i.Delivered)
	}
	sub.Close()
	if n := s.Info().Dropped; n != 11 {
		t.Errorf("the shard counts %d dropped once the reader is gone, want 11", n)
	}
}

// The bound in bytes holds even when entries are few (B09).
func TestBoundInBytes(t *testing.T) {
	s := openShard(t, Config{Queue: Queue{Entries: 1000, Bytes: 64 << 10}}, &fakeLog{auto: true})
	sub := subscribe(t, s, offered(1))
	big := string(make([]byte, 10<<10))
	mustPublish(t, s, big)
	p, _ := sub.Next(1, 1)
	for range 20 {
		mustPublish(t, s, big)
	}
	sub.Advance(p)
	got, st := drain(t, sub)
	if st != Ended || sub.End().Next != uint64(len(got)+1) || len(got) != 6 {
		t.Errorf("status %v after %d more, end %+v: 6 records of 10 KiB fit 64 KiB", st, len(got), sub.End())
	}
}

// B22: history below the live offset is never dropped, however small the bound.
func TestHistoryIsNeverDropped(t *testing.T) {
	s := openShard(t, Config{Queue: smallQueue, TailBytes: 1}, &fakeLog{auto: true})
	for i := range 500 {
		mustPublish(t, s, fmt.Sprintf("%d %s", i, make([]byte, 2000)))
	}
	o := offered(1)
	o.Start = earliest
	sub := subscribe(t, s, o)
	var got int
	for {
		p, st := sub.Next(4<<10, 8<<10)
		if st != Ready {
			break
		}
		if got < 400 {
			mustPublish(t, s, "more while it reads")
		}
		got += p.Records
		sub.Advance(p)
	}
	if want := int(s.Mark()); got != want || sub.Info().Dropped != 0 {
		t.Errorf("delivered %d of %d, dropped %d, end %+v", got, want, sub.Info().Dropped, sub.End())
	}
}

// CatchUp goes on from the log when it has left the ring, and drops nothing.
func TestCatchUpReadsTheLogAndComesBack(t *testing.T) {
	s := openShard(t, Config{Queue: Queue{Entries: 8, OnFull: CatchUp}, TailBytes: 64 << 10}, &fakeLog{auto: true})
	sub := subscribe(t, s, offered(1))
	mustPublish(t, s, "0")
	p, _ := sub.Next(1, 1)
	for i := 1; i < 2000; i++ {
		mustPublish(t, s, fmt.Sprintf("%d %s", i, make([]byte, 1000)))
	}
	if i := sub.Info(); i.LagRecords != 2000 || i.LagEntries != 2000 || i.LagBytes < 1999*1000 {
		t.Errorf("lag of %d records, %d batches, %d bytes; want 2000, 2000 and 2 MB", i.LagRecords, i.LagEntries, i.LagBytes)
	}
	sub.Advance(p)
	got, st := drain(t, sub)
	if len(got) != 1999 || st != Idle {
		t.Fatalf("%d records, status %v, end %+v", len(got), st, sub.End())
	}
	for i, e := range got {
		if e.Offset != uint64(i+1) {
			t.Fatalf("record %d has offset %d", i, e.Offset)
		}
	}
	if sub.cur.c == nil {
		t.Error("the reader did not come back into the ring")
	}
	if i := sub.Info(); i.LagRecords+i.LagEntries+i.LagBytes != 0 {
		t.Errorf("lag of %d records, %d batches, %d bytes when it has everything", i.LagRecords, i.LagEntries, i.LagBytes)
	}
}

// A memory stream that pushes a reader out of its ring ends it where the ring did.
func TestMemoryReaderLeavesTheRing(t *testing.T) {
	s := openShard(t, Config{TailBytes: 64 << 10}, nil)
	sub := subscribe(t, s, offered(1))
	mustPublish(t, s, "0")
	p, _ := sub.Next(1, 1)
	for range 2000 {
		mustPublish(t, s, string(make([]byte, 1000)))
	}
	sub.Advance(p)
	got, st := drain(t, sub)
	if st != Ended || sub.End().Reason != EndLagged || sub.End().Next != uint64(1+len(got)) {
		t.Errorf("status %v after %d, end %+v", st, len(got), sub.End())
	}
}
