package server

import (
	"errors"

	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/wire"
)

// streamShards tells how many shards a stream has. To know that is to know that it
// exists, which whoever may do anything in the tenant may.
func (s *session) streamShards(m *wire.StreamShards) error {
	st, refusal := s.known(stream.Name{Tenant: m.TenantID, Namespace: m.Namespace, Stream: m.Stream})
	if refusal != nil {
		s.refuseRequest(refusal)
		return nil
	}
	view := &wire.StreamShardsView{RequestID: m.RequestID}
	if st != nil {
		view.Shards, view.Routing = uint32(len(st.Places())), st.Routing
	}
	s.answer(view)
	return nil
}

// shardOwners lists the shards of a stream and who serves them.
func (s *session) shardOwners(m *wire.ShardOwners) error {
	view := &wire.ShardOwnersView{RequestID: m.RequestID}
	if m.Kind == wire.OwnersOfStream {
		st, refusal := s.known(stream.Name{Tenant: m.TenantID, Namespace: m.Namespace, Stream: m.Name})
		if refusal != nil {
			s.refuseRequest(refusal)
			return nil
		}
		if st != nil {
			for i, p := range st.Places() {
				view.Owners = append(view.Owners, s.srv.ownerOf(i, p))
			}
		}
	}
	s.answer(view)
	return nil
}

// known finds a stream of the session's tenant; nil: there is none of that name.
func (s *session) known(name stream.Name) (*stream.Stream, *stream.Error) {
	if name.Tenant != s.principal.Tenant {
		return nil, forbiddenTenant()
	}
	st, err := s.srv.cfg.Directory.Stream(name)
	if e, ok := errors.AsType[*stream.Error](err); ok && e.Code == wire.CodeNotFound {
		return nil, nil //nolint:nilnil // documented: no such stream
	}
	if err != nil {
		return nil, asRefusal(err)
	}
	return st, nil
}
