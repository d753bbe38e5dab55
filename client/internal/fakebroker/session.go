package fakebroker

import (
	"fmt"
	"io"
	"sync"

	"github.com/quic-go/quic-go"

	"felix.dev/felix/broker/wire"
	"felix.dev/felix/broker/wire/frameio"
)

// session serves one client-opened stream.
type session struct {
	b       *Broker
	conn    *quic.Conn
	s       *quic.Stream
	streams *sync.WaitGroup // of the connection

	mu sync.Mutex // guards writing to s
}

func (ss *session) serve() {
	r := frameio.NewReader(ss.s, 64<<10)
	authed := false
	var payload []byte
	for {
		h, err := r.Next()
		if err != nil {
			if err == io.EOF { //nolint:errorlint // frameio returns it bare
				ss.finish()
			} else {
				ss.s.CancelWrite(1)
			}
			return
		}
		if payload, err = r.Payload(h, payload); err != nil {
			ss.s.CancelWrite(1)
			return
		}
		if h.Flags != 0 {
			p, err := wire.DecodePublish(h.Flags, payload)
			if err != nil || !authed {
				ss.s.CancelRead(1)
				ss.s.CancelWrite(1)
				return
			}
			ss.publish(&p)
			continue
		}
		m, err := wire.DecodeMessage(payload)
		if err != nil {
			ss.s.CancelRead(1)
			ss.s.CancelWrite(1)
			return
		}
		if !authed {
			authed = ss.auth(m)
			if !authed {
				ss.finish()
				ss.s.CancelRead(0)
				return
			}
			r.SetLimit(wire.MaxPayload)
			continue
		}
		ss.request(m)
	}
}

func (ss *session) finish() {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	_ = ss.s.Close() // the client sees it or is gone
}

func (ss *session) send(m wire.Message) { ss.write(wire.AppendMessage(nil, m)) }

func (ss *session) write(frame []byte) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	_, _ = ss.s.Write(frame) // the client reads it or is gone
}

func (ss *session) auth(m wire.Message) bool {
	ss.b.Auths.Add(1)
	auth, ok := m.(*wire.Auth)
	if !ok {
		ss.send(&wire.ErrorMsg{Message: "auth first", Code: "unauthenticated", Retry: "fatal"})
		return false
	}
	if hook := ss.b.cfg.Hooks.Auth; hook != nil {
		if answer := hook(auth); answer != nil {
			ss.send(answer)
			_, refused := answer.(*wire.ErrorMsg)
			return !refused
		}
	}
	if auth.Token != Token {
		ss.send(&wire.ErrorMsg{Message: "auth failed", Code: "unauthenticated", Retry: "fatal"})
		return false
	}
	ss.send(&wire.AuthOK{ServerFlags: ss.b.cfg.Flags, ServerFeatures: ss.b.cfg.Features})
	return true
}

func (ss *session) request(m wire.Message) {
	if sub, ok := m.(*wire.Subscribe); ok {
		ss.subscribe(sub)
		return
	}
	if hook := ss.b.cfg.Hooks.Request; hook != nil {
		if answer := hook(m); answer != nil {
			ss.send(answer)
			return
		}
	}
	switch m := m.(type) {
	case *wire.StreamShards:
		ss.send(&wire.StreamShardsView{Shards: ss.b.cfg.Shards, RequestID: m.RequestID, Routing: ss.b.cfg.Routing})
	case *wire.ProducerInit:
		ss.send(&wire.ProducerInitOK{RequestID: m.RequestID, ProducerID: 1<<63 + ss.b.nextSub.Add(1)})
	default:
		ss.send(wire.UnsupportedFor(m))
	}
}

// Publish is a publish frame that a hook has taken over. It may be kept and answered later.
type Publish struct {
	wire.Publish
	Shard   uint32
	Records [][]byte
	ss      *session
}

func (ss *session) publish(p *wire.Publish) {
	ss.b.Batches.Add(1)
	taken := &Publish{Publish: *p, ss: ss, Shard: wire.ShardOf(p.Key, p.Keyed, ss.b.cfg.Shards, ss.b.cfg.Routing)}
	taken.Namespace, taken.Stream = append([]byte{}, p.Namespace...), append([]byte{}, p.Stream...)
	taken.Key = append([]byte{}, p.Key...)
	for _, r := range p.Records.All() {
		taken.Records = append(taken.Records, append([]byte{}, r...))
	}
	if hook := ss.b.cfg.Hooks.Publish; hook != nil && hook(taken) {
		return
	}
	taken.Accept()
}

// ShardKey names the shard that the publish goes to.
func (p *Publish) ShardKey() ShardKey {
	return ShardKey{Namespace: string(p.Namespace), Stream: string(p.Stream), Shard: p.Shard}
}

// Store stores the records without an answer. refused is for idempotent ones.
func (p *Publish) Store() (offset uint64, refused *wire.RefusedReason) {
	st := p.ss.b.cfg.Store
	if p.Idempotent {
		return st.appendIdempotent(p.ShardKey(), p.ProducerID, p.Sequence, p.Records)
	}
	return st.Append(p.ShardKey(), p.Records...), nil
}

// Accept stores and answers.
func (p *Publish) Accept() {
	offset, refused := p.Store()
	switch {
	case refused != nil:
		p.ss.send(&wire.PublishRefused{RequestID: p.RequestID, Reason: *refused, Message: fmt.Sprintf("sequence %d", p.Sequence)})
	case p.Idempotent:
		p.ss.send(&wire.PublishOK{RequestID: p.RequestID, Offset: &offset})
	case p.Acked:
		p.ss.write(wire.AppendAck(nil, &wire.Ack{OK: true, RequestID: p.RequestID, HasOffset: true, Offset: offset}))
	}
}

// Fail answers with an error and stores nothing.
func (p *Publish) Fail(code wire.Code, retry wire.Retry, reason string, retryAfterMS uint64) {
	if p.Idempotent {
		p.ss.send(&wire.PublishError{
			RequestID: p.RequestID, Message: "failed by the test", Code: code.String(), Retry: retry.String(),
			Detail: &wire.ErrorDetail{Reason: reason, RetryAfterMS: retryAfterMS},
		})
		return
	}
	p.ss.write(wire.AppendAck(nil, &wire.Ack{
		RequestID: p.RequestID, Message: "failed by the test", HasCode: true, Code: code, Retry: retry,
		HasDetail: true, Reason: reason, RetryAfterMS: retryAfterMS,
	}))
}

// Send writes any message on the publish's stream.
func (p *Publish) Send(m wire.Message) { p.ss.send(m) }

// CloseConn closes the connection that the publish came on.
func (p *Publish) CloseConn() { _ = p.ss.conn.CloseWithError(0, "closed by the test") }
