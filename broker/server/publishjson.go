package server

import (
	"time"

	"felix.dev/felix/broker/wire"
)

// The JSON forms of a publish are what the client falls back to; their records
// have memory of their own, which counts like a frame's.

func (s *session) publishJSON(m *wire.PublishJSON) error {
	return s.publishMessage(m.TenantID, m.Namespace, m.Stream, m.Key, wire.RecordsOf(m.Payload), m.RequestID, m.Ack)
}

func (s *session) publishBatchJSON(m *wire.PublishBatchJSON) error {
	return s.publishMessage(m.TenantID, m.Namespace, m.Stream, m.Key, m.Records, m.RequestID, m.Ack)
}

func (s *session) publishMessage(tenant, namespace, name string, key []byte, records wire.Records, id *uint64, ack wire.AckMode) error {
	form := replyNone
	if ack != wire.AckNone {
		if id == nil {
			return fatal(wire.CodeInvalidRequest, "an acked publish needs a request_id")
		}
		form = replyJSON
	}
	p := s.newPublishing()
	p.form, p.since = form, time.Now()
	if id != nil {
		p.id = *id
	}
	s.publishRecords(p, tenant, namespace, name, key, records)
	return nil
}

func (s *session) publishIdempotent(m *wire.PublishIdempotent) error {
	p := s.newPublishing()
	p.form, p.id, p.since = replyIdempotent, m.RequestID, time.Now()
	p.pub.HasProducer, p.pub.Producer, p.pub.Sequence = true, m.ProducerID, m.Sequence
	s.publishRecords(p, m.TenantID, m.Namespace, m.Stream, m.Key, m.Records)
	return nil
}

func (s *session) publishRecords(p *publishing, tenant, namespace, name string, key []byte, records wire.Records) {
	s.patience.begin()
	p.pub.Records = records
	p.cost = frameCost(uint32(len(records.Bytes)))
	if place := s.admit(p, []byte(tenant), []byte(namespace), []byte(name), key, key != nil); place != nil {
		place.Publish(&p.pub)
	}
}
