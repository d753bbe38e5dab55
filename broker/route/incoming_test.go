package route

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/wire"
	"felix.dev/felix/broker/wire/frameio"
)

var update = flag.Bool("update", false, "write the golden files")

// frameOf is a publish as a Forwarder sends it.
func frameOf(k Key, id uint64, round uint32, p *stream.Publish) []byte {
	e := &entry{place: &Place{key: k}, pub: p, id: id}
	return append(appendPublish(nil, e, round), p.Records.Bytes...)
}

// The bytes of docs/format/forward.md. Brokers of two versions meet during an upgrade.
func TestGoldenFrames(t *testing.T) {
	plain := &stream.Publish{Records: wire.RecordsOf([]byte("one"), []byte("two"))}
	once := &stream.Publish{Records: wire.RecordsOf([]byte("x")), HasProducer: true, Producer: 0x1122334455667788, Sequence: 9}
	key := Key{Incarnation: shard0.Incarnation, Shard: 0x01020304}
	ack := func(r stream.Result) []byte {
		a := ackOf(7, r, &State{Node: "b1", Addr: "b1:5000", Generation: 3})
		return wire.AppendAck(nil, &a)
	}
	for name, got := range map[string][]byte{
		"publish":    frameOf(key, 7, 2, plain),
		"idempotent": frameOf(key, 8, 2, once),
		"ping":       appendPing(nil),
		"pong":       wire.AppendHeader(nil, 0, 0),
		"written":    ack(stream.Result{Offset: 42}),
		"notleader":  ack(stream.Result{Err: notServed()}),
		"gap":        ack(stream.Result{Err: &stream.RefusedError{Reason: stream.SequenceGap, Expected: 5}}),
	} {
		path := filepath.Join("testdata", name+".bin")
		if *update {
			if err := os.WriteFile(path, got, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(want, got) {
			t.Errorf("%s:\n got %x\nwant %x", name, got, want)
		}
	}
	var b [headLen]byte
	h, err := readHead(bytes.NewReader(frameOf(key, 8, 2, once)), &b)
	want := head{
		kind: kindPublish, idempotent: true, incarnation: 32, records: wire.Records{Count: 1}, length: 5,
		round: 2, id: 8, producer: once.Producer, sequence: 9, shard: key.Shard,
	}
	if d := cmp.Diff(want, h, cmp.AllowUnexported(head{})); d != "" || err != nil {
		t.Errorf("read: %v (-want +got):\n%s", err, d)
	}
}

// receive has a Receiver serve one connection, and gives the other end.
func receive(t *testing.T, table Table, change func(*ReceiverConfig)) (net.Conn, *Receiver) {
	t.Helper()
	cfg := ReceiverConfig{Table: table}
	if change != nil {
		change(&cfg)
	}
	r, err := NewReceiver(cfg)
	if err != nil {
		t.Fatal(err)
	}
	mine, theirs := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Serve(context.Background(), theirs)
	}()
	t.Cleanup(func() {
		_ = mine.Close()
		<-done
	})
	return mine, r
}

// Whatever comes, what cannot be read ends the connection, and nothing is written or held.
func TestMalformedFrames(t *testing.T) {
	good := frameOf(shard0, 1, 0, &stream.Publish{Records: wire.RecordsOf([]byte("record"))})
	change := func(at int, b ...byte) []byte {
		f := slices.Clone(good)
		copy(f[at:], b)
		return f
	}
	for name, frame := range map[string][]byte{
		"kind":               change(0, 9),
		"flags":              change(1, 2),
		"reserved":           change(3, 1),
		"length":             change(4, 0xff, 0xff, 0xff, 0xff),
		"count":              change(8, 0xff, 0xff, 0xff, 0xff),
		"no records":         frameOf(shard0, 1, 0, &stream.Publish{}),
		"a record too long":  change(len(good)-10, 0, 0, 1, 0),
		"a ping with length": append(appendPing(nil)[:4], change(0, kindPing)[4:]...),
		"cut in its head":    good[:20],
		"cut in its name":    good[:headLen+5],
		"cut in a record":    good[:len(good)-1],
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &book{}
				table := newFakeTable()
				table.set(shard0, State{Local: newReplica(t, b).shard})
				conn, r := receive(t, table, nil)
				go func() {
					_, _ = conn.Write(frame)
					if frame[0] == kindPublish && len(frame) < len(good) {
						_ = conn.Close()
					}
				}()
				_, err := frameio.NewReader(conn, 0).Next()
				if err == nil {
					t.Error("answered")
				}
				synctest.Wait()
				if n := len(b.all()); n != 0 || r.Bytes() != 0 {
					t.Errorf("%d records, %d bytes held", n, r.Bytes())
				}
			})
		})
	}
}

func FuzzIncoming(f *testing.F) {
	f.Add(frameOf(shard0, 1, 0, &stream.Publish{Records: wire.RecordsOf([]byte("record"))}))
	f.Add(append(appendPing(nil), frameOf(shard0, 2, 1, &stream.Publish{Records: wire.RecordsOf(nil, []byte("x")), HasProducer: true})...))
	f.Fuzz(func(t *testing.T, b []byte) {
		table := newFakeTable()
		table.set(shard0, State{Local: newReplica(t, &book{}).shard})
		r, err := NewReceiver(ReceiverConfig{Table: table})
		if err != nil {
			t.Fatal(err)
		}
		mine, theirs := net.Pipe()
		var both sync.WaitGroup
		both.Go(func() {
			_, _ = mine.Write(b)
			_ = mine.Close()
		})
		both.Go(func() { _, _ = io.Copy(io.Discard, mine) })
		r.Serve(context.Background(), theirs)
		both.Wait()
		if n := r.Bytes(); n != 0 {
			t.Errorf("%d bytes held", n)
		}
	})
}

// A broker that does not read its answers is not read any more, and then cut off.
func TestUnreadAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &book{}
		table := newFakeTable()
		table.set(shard0, State{Local: newReplica(t, b).shard})
		conn, r := receive(t, table, nil)
		frame := frameOf(shard0, 1, 0, &stream.Publish{Records: wire.RecordsOf([]byte("record"))})
		begin := time.Now()
		sent := 0
		for {
			_ = conn.SetWriteDeadline(time.Now().Add(time.Minute))
			if _, err := conn.Write(frame); err != nil {
				if errors.Is(err, os.ErrDeadlineExceeded) {
					t.Error("neither read nor closed")
				}
				break
			}
			sent++
		}
		if took := time.Since(begin); took > 12*time.Second {
			t.Errorf("closed after %s", took)
		}
		if most := unreadAnswers / 10; sent > most {
			t.Errorf("%d publishes were taken without an answer being read", sent)
		}
		synctest.Wait()
		if n := r.Bytes(); n != 0 {
			t.Errorf("%d bytes held", n)
		}
	})
}

// Room is counted for each shard: one that is stuck leaves the rest to others.
func TestReceiverRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other := Key{Incarnation: shard0.Incarnation, Shard: 1}
		table := newFakeTable()
		stuck := newReplica(t, &book{})
		stuck.holds()
		table.set(shard0, State{Local: stuck.shard})
		table.set(other, State{Local: newReplica(t, &book{}).shard})
		conn, r := receive(t, table, func(c *ReceiverConfig) { c.ShardBytes = 4 << 10 })
		frames := frameio.NewReader(conn, 0)
		payload := wire.RecordsOf(make([]byte, 1000))
		refused := 0
		for id := range uint64(10) {
			for i, k := range []Key{shard0, other} {
				if _, err := conn.Write(frameOf(k, 2*id+uint64(i), 0, &stream.Publish{Records: payload})); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if k == shard0 && stuck.keeps() == int(id)+1 {
					continue
				}
				h, err := frames.Next()
				if err != nil {
					t.Fatal(err)
				}
				body, err := frames.Payload(h, nil)
				if err != nil {
					t.Fatal(err)
				}
				a, err := wire.DecodeAck(h.Flags, body)
				switch {
				case err != nil || a.RequestID != 2*id+uint64(i):
					t.Fatalf("%+v, %v", a, err)
				case k == other && !a.OK, k == shard0 && a.Code != wire.CodeOverloaded:
					t.Errorf("%+v", a)
				case !a.OK:
					refused++
				}
			}
		}
		if n := stuck.keeps(); n != 2 || refused != 8 {
			t.Errorf("%d taken, %d refused", n, refused)
		}
		_ = conn.Close() // its answers are nobody's, its room is given back
		stuck.release(func(*stream.Publish) stream.Result { return stream.Result{} })
		if n := r.Bytes(); n != 0 {
			t.Errorf("%d bytes held", n)
		}
	})
}

func TestHeadIsBigEndian(t *testing.T) {
	b := frameOf(Key{Incarnation: "i", Shard: 5}, 6, 7, &stream.Publish{Records: wire.RecordsOf([]byte("x"))})
	if binary.BigEndian.Uint32(b[40:]) != 5 || binary.BigEndian.Uint64(b[16:]) != 6 || binary.BigEndian.Uint32(b[12:]) != 7 {
		t.Errorf("%x", b)
	}
}
