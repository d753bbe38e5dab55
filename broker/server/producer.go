package server

import (
	"crypto/rand"
	"encoding/binary"

	"felix.dev/felix/broker/wire"
)

// producerInit gives a producer id. Shards learn of it with its first batch.
func (s *session) producerInit(m *wire.ProducerInit) error {
	if s.srv.draining.Load() {
		s.refuseRequest(draining())
		return nil
	}
	var id [8]byte
	_, _ = rand.Read(id[:]) // documented never to fail
	s.answer(&wire.ProducerInitOK{RequestID: m.RequestID, ProducerID: binary.BigEndian.Uint64(id[:])})
	return nil
}
