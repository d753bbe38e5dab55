package server

import "felix.dev/felix/broker/wire"

// topology names this broker, if it knows what clients call it.
func (s *session) topology() error {
	view := &wire.TopologyView{}
	if cfg := &s.srv.cfg; cfg.Advertise != "" && !s.srv.draining.Load() {
		view.Brokers = []wire.Broker{{NodeID: cfg.NodeID, Addr: cfg.Advertise}}
	}
	s.answer(view)
	return nil
}
