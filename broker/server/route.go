package server

import (
	"felix.dev/felix/broker/auth"
	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/wire"
)

// keepRoutes bounds what one session remembers, and keepName the names of it.
const (
	keepRoutes = 256
	keepName   = 1024
)

// route is a stream that a session may publish to. It holds as long as the
// directory's generation is the one it was found in.
type route struct {
	generation uint64
	stream     *stream.Stream
	rooms      []*shardRoom // by shard; nil until used
}

// routes remembers decisions, so that a publish to a known name costs a comparison.
type routes struct {
	last   *route
	byName map[string]*route
	key    []byte // scratch
}

// publishRoute decides whether the session may publish to a stream, and finds it.
func (s *session) publishRoute(tenant, namespace, name []byte) (*route, *stream.Error) {
	if string(tenant) != s.principal.Tenant {
		return nil, forbiddenTenant()
	}
	generation := s.srv.cfg.Directory.Generation()
	rs := &s.routes
	if r := rs.last; r != nil && r.generation == generation &&
		string(name) == r.stream.Name.Stream && string(namespace) == r.stream.Name.Namespace {
		return r, nil
	}
	keep := len(namespace)+len(name) <= keepName
	if keep {
		rs.key = append(rs.key[:0], byte(len(namespace)>>8), byte(len(namespace)))
		rs.key = append(append(rs.key, namespace...), name...)
		if r := rs.byName[string(rs.key)]; r != nil && r.generation == generation {
			rs.last = r
			return r, nil
		}
	}
	st, refusal := s.find(auth.StreamPublish, stream.Name{
		Tenant: s.principal.Tenant, Namespace: string(namespace), Stream: string(name),
	})
	if refusal != nil {
		return nil, refusal
	}
	r := &route{generation: generation, stream: st, rooms: make([]*shardRoom, len(st.Places()))}
	if !keep {
		return r, nil
	}
	if rs.byName == nil || len(rs.byName) >= keepRoutes {
		rs.byName = make(map[string]*route)
	}
	rs.byName[string(rs.key)] = r
	rs.last = r
	return r, nil
}

// find looks a stream up for a principal that wants to do action on it.
func (s *session) find(action auth.Action, name stream.Name) (*stream.Stream, *stream.Error) {
	if name.Tenant != s.principal.Tenant {
		return nil, forbiddenTenant()
	}
	if !s.principal.AllowsStream(action, name.Tenant, name.Namespace, name.Stream) {
		return nil, refuse(wire.CodeForbidden, "%s on %s is not granted", action, name)
	}
	st, err := s.srv.cfg.Directory.Stream(name)
	if err != nil {
		return nil, asRefusal(err)
	}
	return st, nil
}

// room is what this connection has for shard i.
func (r *route) room(c *connection, i uint32) *shardRoom {
	if b := r.rooms[i]; b != nil {
		return b
	}
	b := c.shardRoom(r.stream.Places()[i])
	r.rooms[i] = b
	return b
}

func forbiddenTenant() *stream.Error {
	return refuse(wire.CodeForbidden, "the request is for another tenant than the stream authenticated for")
}
