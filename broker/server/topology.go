package server

import (
	"slices"

	"felix.dev/felix/broker/wire"
)

// topology names the brokers that can serve.
func (s *session) topology() error {
	s.answer(&wire.TopologyView{Brokers: s.srv.brokers()})
	return nil
}

// brokers are those of the cluster, or this one, if it knows what clients call it. One
// that shuts down is none.
func (s *Server) brokers() []wire.Broker {
	var all []wire.Broker
	switch {
	case s.cfg.Cluster:
		all = slices.Clone(s.cfg.Directory.Brokers())
	case s.cfg.Advertise != "":
		all = []wire.Broker{{NodeID: s.cfg.NodeID, Addr: s.cfg.Advertise}}
	}
	leaving := s.draining.Load()
	return slices.DeleteFunc(all, func(b wire.Broker) bool {
		return b.Addr == "" || leaving && b.NodeID == s.cfg.NodeID
	})
}
