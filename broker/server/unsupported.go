package server

import (
	"strings"

	"felix.dev/felix/broker/wire"
)

// unsupported answers a request that is not served here. The stream goes on, for a
// client that can read that; to others an unknown type is the end of it. Cache
// requests are the exception: clients send them to any broker, unasked.
func (s *session) unsupported(m wire.Message) error {
	if s.offer.Features.Has(wire.FeatureUnsupported) {
		s.answer(wire.UnsupportedFor(m))
		return nil
	}
	if strings.HasPrefix(m.MessageType(), "cache_") {
		s.refuseRequest(refuse(wire.CodeInvalidRequest, "this broker serves no caches"))
		return nil
	}
	return fatal(wire.CodeInvalidRequest, "unknown request %q", clip(m.MessageType(), 64))
}
