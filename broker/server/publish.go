package server

import (
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"felix.dev/felix/broker/bufpool"
	"felix.dev/felix/broker/metrics"
	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/wire"
)

// replyForm is how a publish is answered: as it was asked.
type replyForm uint8

const (
	replyNone replyForm = iota
	replyAck
	replyJSON
	replyIdempotent
)

// publishing is one publish from its frame to its answer. They are pooled; done is
// the only thing that the shard calls, and the last that is done with one.
type publishing struct {
	pub     stream.Publish
	session *session
	form    replyForm
	id      uint64 // request
	since   time.Time

	frame *bufpool.Buffer // holds the records, nil if they have their own memory
	cost  int64           // in each budget that is set
	conn  *budget         // nil while the bytes are not held there
	total *budget
	shard *budget
	place *budget
	ack   wire.Ack // scratch
}

var publishings sync.Pool

func (s *session) newPublishing() *publishing {
	p, ok := publishings.Get().(*publishing)
	if !ok {
		p = new(publishing)
		p.pub.Done = p.done // bound once for the life of p
	}
	p.session = s
	return p
}

// publishFrame serves a binary publish. It ends the stream only if the frame
// cannot be read.
func (s *session) publishFrame(h wire.Header) error {
	p, place, err := s.readPublish(h)
	if place != nil {
		place.Publish(&p.pub)
	}
	return err
}

// readPublish reads a publish and finds it a place; nil: it was answered, or needs
// no answer.
func (s *session) readPublish(h wire.Header) (*publishing, stream.Place, error) {
	s.patience.begin()
	// A large frame may be long on its way: while it arrives it takes no room that
	// others publish in.
	cost, room := frameCost(h.Length), s.conn.ingress
	if h.Length > largeFrame {
		room = s.conn.arriving
	}
	if !room.acquire(cost, &s.patience) {
		return nil, nil, s.shedFrame(h)
	}
	p := s.newPublishing()
	p.cost = cost
	if room == s.conn.ingress {
		p.conn = room
	} else {
		defer room.release(cost)
	}
	var err error
	if p.frame, err = readPayload(s.frames, h); err != nil {
		p.free()
		return nil, nil, err
	}
	s.patience.begin() // how long the client took to send it is not ours
	m, err := wire.DecodePublish(h.Flags, p.frame.B)
	if m.Acked {
		p.form, p.id, p.since = replyAck, m.RequestID, time.Now()
		if h.Flags.Has(wire.FlagPublishIdempotent) {
			p.form = replyIdempotent
		}
	} else if h.Flags.Has(wire.FlagPublishAcked) {
		p.free() // there is not even a request id to answer
		return nil, nil, fatal(wire.CodeInvalidRequest, "%v", err)
	}
	if err != nil {
		s.refusePublish(p, refuse(wire.CodeInvalidRequest, "%v", err))
		return nil, nil, nil
	}
	p.pub.Records = m.Records
	p.pub.HasProducer, p.pub.Producer, p.pub.Sequence = m.Idempotent, m.ProducerID, m.Sequence
	return p, s.admit(p, m.Tenant, m.Namespace, m.Stream, m.Key, m.Keyed), nil
}

// admit gives the place that p may go to; nil: p was answered and is gone.
func (s *session) admit(p *publishing, tenant, namespace, name, key []byte, keyed bool) stream.Place {
	if p.form != replyNone {
		s.out.reserve()
	}
	place, refusal := s.place(p, tenant, namespace, name, key, keyed)
	if refusal != nil {
		p.done(stream.Result{Err: refusal})
		return nil
	}
	return place
}

// refusePublish answers a publish that admit was not called for.
func (s *session) refusePublish(p *publishing, e *stream.Error) {
	if p.form != replyNone {
		s.out.reserve()
	}
	p.done(stream.Result{Err: e})
}

// place checks p and finds it a place and room there.
func (s *session) place(p *publishing, tenant, namespace, name, key []byte, keyed bool) (stream.Place, *stream.Error) {
	if s.srv.draining.Load() {
		return nil, draining()
	}
	if refusal := s.checkRecords(p.pub.Records); refusal != nil {
		return nil, refusal
	}
	r, refusal := s.publishRoute(tenant, namespace, name)
	if refusal != nil {
		return nil, refusal
	}
	places := r.stream.Places()
	i := wire.ShardOf(key, keyed, uint32(len(places)), r.stream.Routing)
	room := r.room(s.conn, i)
	for _, b := range [...]struct {
		budget *budget
		held   **budget
		reason metrics.ShedReason
	}{
		{s.conn.ingress, &p.conn, metrics.ShedConnectionBytes},
		{room.own, &p.shard, metrics.ShedShardQueue},
		{room.all, &p.place, metrics.ShedShardQueue},
		// Last: who waits for its shard takes no room from other connections.
		{s.srv.ingress, &p.total, metrics.ShedProcessBytes},
	} {
		if *b.held != nil {
			continue
		}
		if !b.budget.acquire(p.cost, &s.patience) {
			return nil, s.overloaded(b.reason)
		}
		*b.held = b.budget
	}
	return places[i], nil
}

// checkRecords refuses what could not be delivered: a whole batch goes or none of it.
func (s *session) checkRecords(r wire.Records) *stream.Error {
	if r.Count == 0 {
		return refuse(wire.CodeInvalidRequest, "the batch is empty")
	}
	if len(r.Bytes) <= min(s.srv.cfg.MaxRecordBytes, s.srv.cfg.MaxBatchBytes) {
		return nil
	}
	if err := r.CheckSizes(s.srv.cfg.MaxRecordBytes); err != nil {
		return refuse(wire.CodeInvalidRequest, "%v; nothing of the batch was written", err)
	}
	if len(r.Bytes) <= s.srv.cfg.MaxBatchBytes {
		return nil
	}
	first, size := 0, 0
	for i, payload := range r.All() {
		if size += 4 + len(payload); size > s.srv.cfg.MaxBatchBytes {
			first = i
			break
		}
	}
	return refuse(wire.CodeInvalidRequest,
		"the batch of %d bytes is above the limit of %d, which record %d passes; nothing of it was written",
		len(r.Bytes), s.srv.cfg.MaxBatchBytes, first)
}

func (s *session) overloaded(reason metrics.ShedReason) *stream.Error {
	s.srv.m.Publish.Shed.With(reason).Inc()
	return refuseAfter(wire.CodeOverloaded, "publish_queue_full", s.srv.cfg.OverloadRetry,
		"too many publishes are waiting to be committed")
}

// shedFrame turns a publish away before its payload is read, but for the request
// id that an acked one is answered with.
func (s *session) shedFrame(h wire.Header) error {
	refusal := s.overloaded(metrics.ShedConnectionBytes)
	const idBytes = 8
	if !h.Flags.Has(wire.FlagPublishAcked) || h.Length < idBytes {
		s.srv.m.Publish.Requests.With(metrics.PublishResult(refusal.Code.String())).Inc()
		return s.frames.Skip(h)
	}
	id, err := s.frames.Payload(wire.Header{Flags: h.Flags, Length: idBytes}, make([]byte, 0, idBytes))
	if err != nil {
		return err
	}
	h.Length -= idBytes
	if err := s.frames.Skip(h); err != nil {
		return err
	}
	p := s.newPublishing()
	p.form, p.id, p.since = replyAck, binary.BigEndian.Uint64(id), time.Now()
	if h.Flags.Has(wire.FlagPublishIdempotent) {
		p.form = replyIdempotent
	}
	s.refusePublish(p, refusal)
	return nil
}

// done answers a publish and gives back what it held. It is called once, by
// whoever commits or refuses, and does not block.
func (p *publishing) done(r stream.Result) {
	s := p.session
	m := &s.srv.m.Publish
	if r.Err == nil {
		m.Requests.With(metrics.PublishOK).Inc()
		m.Records.Add(float64(p.pub.Records.Count))
		m.Bytes.Add(float64(p.pub.Records.PayloadBytes()))
	} else {
		m.Requests.With(resultOf(r.Err)).Inc()
		if e, ok := errors.AsType[*stream.Error](r.Err); ok && e.Reason == stream.ReasonSubscriberBlocking {
			m.Shed.With(metrics.ShedReaders).Inc()
		}
	}
	if p.form != replyNone {
		p.reply(r)
		m.Ack.Observe(time.Since(p.since).Seconds())
	}
	p.free()
}

func (p *publishing) free() {
	for _, b := range [...]*budget{p.total, p.place, p.shard, p.conn} {
		if b != nil {
			b.release(p.cost)
		}
	}
	p.frame.Give()
	*p = publishing{pub: stream.Publish{Done: p.pub.Done}}
	publishings.Put(p)
}

func resultOf(err error) metrics.PublishResult {
	if _, ok := errors.AsType[*stream.RefusedError](err); ok {
		return metrics.PublishRefused
	}
	return metrics.PublishResult(asRefusal(err).Code.String())
}

// reply answers in the form that was asked for.
func (p *publishing) reply(r stream.Result) {
	s := p.session
	withOffset := s.offer.Flags.Has(wire.FlagAckOffset)
	if p.form == replyAck {
		p.ack = wire.Ack{RequestID: p.id, OK: r.Err == nil}
		if r.Err == nil {
			p.ack.HasOffset, p.ack.Offset = withOffset, r.Offset
			if o := r.Owner; o != nil && s.offer.Flags.Has(wire.FlagAckOwner) {
				p.ack.HasOwner, p.ack.OwnerNode, p.ack.OwnerAddr, p.ack.Generation = true, o.NodeID, o.Addr, o.Generation
			}
		} else {
			fillAck(&p.ack, asRefusal(r.Err), s.offer.Flags)
		}
		s.out.ack(&p.ack)
		return
	}
	s.out.settle(s.jsonReply(p.id, r, withOffset))
}

// jsonReply answers a JSON or idempotent publish.
func (s *session) jsonReply(id uint64, r stream.Result, withOffset bool) wire.Message {
	refused, isRefused := errors.AsType[*stream.RefusedError](r.Err)
	if isRefused && refused.Reason == stream.SequenceReused && !s.offer.Features.Has(wire.FeatureSequenceReused) {
		// A client of that age knows "already written" only as success.
		r = stream.Result{Offset: refused.Offset}
		isRefused = false
	}
	switch {
	case isRefused:
		return &wire.PublishRefused{
			RequestID: id,
			Reason:    wire.RefusedReason{Kind: wire.RefusedKind(refused.Reason), Expected: refused.Expected},
			Message:   refused.Error(),
		}
	case r.Err != nil:
		return publishError(id, asRefusal(r.Err), s.codes())
	}
	ok := &wire.PublishOK{RequestID: id}
	if withOffset {
		ok.Offset = &r.Offset
	}
	return ok
}
