package route

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"felix.dev/felix/broker/bufpool"
	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/wire"
)

// keepShards is how many shards of a connection are remembered.
const keepShards = 4096

// unreadAnswers is how many bytes of answers may wait before a connection is read on.
const unreadAnswers = 1 << 20

// incoming is one connection from another broker. A goroutine reads it, which waits for
// nothing else: a shard that takes its time holds up what is for it. Answers are appended
// by whoever has them and written by another goroutine.
type incoming struct {
	r      *Receiver
	conn   net.Conn
	in     *bufio.Reader
	head   [headLen]byte
	name   [4 + maxIncarnation]byte
	shards map[string]*target // by shard number and incarnation, as in a frame

	mu      sync.Mutex
	written sync.Cond // pending has been taken, or it is over
	pending []byte    // answers
	over    bool

	kick chan struct{} // capacity 1: there are answers
	done chan struct{} // closed by end
}

// target is a shard that the connection has sent publishes for.
type target struct {
	key Key

	mu      sync.Mutex
	refused error // why what belongs to round is not taken any more
	round   uint32
}

// taken is one publish while its shard has it. They are pooled.
type taken struct {
	pub   stream.Publish
	in    *incoming
	to    *target
	id    uint64
	round uint32
	buf   *bufpool.Buffer
	bytes int64
}

var takens sync.Pool

func newIncoming(r *Receiver, conn net.Conn) *incoming {
	in := &incoming{
		r: r, conn: conn, in: bufio.NewReaderSize(conn, writeBytes), shards: make(map[string]*target),
		kick: make(chan struct{}, 1), done: make(chan struct{}),
	}
	in.written.L = &in.mu
	return in
}

// read takes publishes until the connection ends; nil: the other side ended it.
func (in *incoming) read() error {
	for {
		h, err := readHead(in.in, &in.head)
		switch {
		case errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return err
		case h.kind == kindPing:
			in.pong()
			continue
		}
		in.await()
		if err := in.publish(&h); err != nil {
			return err
		}
	}
}

// publish takes one publish and gives it to its shard, or refuses it.
func (in *incoming) publish(h *head) error {
	to, err := in.target(h)
	if err != nil {
		return err
	}
	const around = 512
	bytes := int64(h.length) + around
	if !in.r.room.take(to.key, bytes) {
		in.answer(h.id, stream.Result{Err: overloaded("too many publishes wait for the shard")}, nil)
		_, err := in.in.Discard(h.length)
		return err
	}
	buf := bufpool.Take(h.length)
	buf.B = buf.B[:h.length]
	if _, err = io.ReadFull(in.in, buf.B); err == nil {
		h.records, err = wire.ParseRecords(h.records.Count, buf.B)
	}
	if err == nil && h.records.Count == 0 {
		err = fmt.Errorf("%w: no records", errFrame)
	}
	if err != nil {
		buf.Give()
		in.r.room.give(to.key, bytes)
		return err
	}
	t, ok := takens.Get().(*taken)
	if !ok {
		t = new(taken)
		t.pub.Done = t.answered
	}
	t.in, t.to, t.id, t.round, t.buf, t.bytes = in, to, h.id, h.round, buf, bytes
	t.pub.Records = h.records
	t.pub.HasProducer, t.pub.Producer, t.pub.Sequence = h.idempotent, h.producer, h.sequence
	s, why := in.r.cfg.Table.Lookup(to.key), to.closedTo(h.round)
	switch {
	case why != nil:
		t.answer(stream.Result{Err: why}, nil)
	case s.Local != nil:
		s.Local.Publish(&t.pub)
	case s.Gone:
		t.answer(stream.Result{Err: notFound()}, nil)
	default:
		t.answer(stream.Result{Err: notServed()}, &s)
	}
	return nil
}

// notServed is for a publish that came to the wrong broker. It is never sent on: who sent
// it knows better, or will.
func notServed() *stream.Error {
	return &stream.Error{
		Code: wire.CodeNotLeader, Retry: wire.RetryRedirect, Message: "this broker does not serve the shard", Err: stream.ErrNotLeader,
	}
}

// target finds the shard of a frame.
func (in *incoming) target(h *head) (*target, error) {
	name := in.name[:4+h.incarnation]
	copy(name, in.head[headLen-4:])
	if _, err := io.ReadFull(in.in, name[4:]); err != nil {
		return nil, err
	}
	if t := in.shards[string(name)]; t != nil {
		return t, nil
	}
	if len(in.shards) >= keepShards {
		clear(in.shards)
	}
	t := &target{key: Key{Incarnation: string(name[4:]), Shard: h.shard}}
	in.shards[string(name)] = t
	return t, nil
}

// closedTo says why something of the round was not taken: then nothing of it is any more,
// or it would overtake.
func (t *target) closedTo(round uint32) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.round != round {
		t.refused = nil
	}
	return t.refused
}

func (t *target) closeTo(round uint32, why error) {
	t.mu.Lock()
	t.refused, t.round = why, round
	t.mu.Unlock()
}

func (t *taken) answered(r stream.Result) { t.answer(r, nil) }

// answer answers a publish and gives back what it held. It does not block.
func (t *taken) answer(r stream.Result, s *State) {
	if r.Err != nil {
		switch v := judge(r.Err, true); {
		case v == again:
			t.to.closeTo(t.round, r.Err)
		case v == unsure && t.pub.HasProducer: // what comes behind it is not written, for sure
			t.to.closeTo(t.round, notServed())
		}
	}
	t.in.answer(t.id, r, s)
	t.in.r.room.give(t.to.key, t.bytes)
	t.buf.Give()
	*t = taken{pub: stream.Publish{Done: t.pub.Done}}
	takens.Put(t)
}

func (in *incoming) answer(id uint64, r stream.Result, s *State) {
	a := ackOf(id, r, s)
	in.mu.Lock()
	if !in.over {
		in.pending = wire.AppendAck(in.pending, &a)
	}
	in.mu.Unlock()
	in.wake()
}

func (in *incoming) pong() {
	in.mu.Lock()
	in.pending = wire.AppendHeader(in.pending, 0, 0)
	in.mu.Unlock()
	in.wake()
}

// await waits while the other side does not read its answers.
func (in *incoming) await() {
	in.mu.Lock()
	for len(in.pending) >= unreadAnswers && !in.over {
		in.written.Wait()
	}
	in.mu.Unlock()
}

func (in *incoming) wake() {
	select {
	case in.kick <- struct{}{}:
	default:
	}
}

// end is for a connection that nobody reads any more, or writes to.
func (in *incoming) end() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.over {
		in.over, in.pending = true, nil
		in.written.Broadcast()
		close(in.done)
	}
}

// write writes answers until the connection ends.
func (in *incoming) write() {
	var spare []byte
	var p patience
	for {
		select {
		case <-in.kick:
		case <-in.done:
			return
		}
		in.mu.Lock()
		b := in.pending
		in.pending = spare[:0]
		in.written.Broadcast()
		in.mu.Unlock()
		if len(b) == 0 {
			spare = b
			continue
		}
		err := p.extend(in.conn, time.Now(), in.r.cfg.AnswerTimeout)
		if err == nil {
			_, err = in.conn.Write(b)
		}
		if err != nil { // the reader ends with it
			_ = in.conn.Close()
			in.end()
			return
		}
		if spare = b; cap(spare) > writeBytes {
			spare = nil
		}
	}
}
