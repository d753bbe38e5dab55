package quorum

import (
	"fmt"
	"strings"
)

// Server is one member of a group: a broker with the data directory that it has. A
// broker whose volume was wiped is another server, so it can never vote in the place
// of the one that it was.
type Server struct{ Node, Instance string }

// String is the server's id in raft: "node.instance". It is its address too, for
// where a node is to be found is asked at each dial.
func (s Server) String() string { return s.Node + "." + s.Instance }

// ParseServer is the reverse of Server.String. Node ids may contain dots, instances
// do not.
func ParseServer(id string) (Server, error) {
	i := strings.LastIndexByte(id, '.')
	if i <= 0 || i == len(id)-1 {
		return Server{}, fmt.Errorf("quorum: server id %q: want node.instance", id)
	}
	return Server{Node: id[:i], Instance: id[i+1:]}, nil
}

// Validate says what is wrong with the server's parts.
func (s Server) Validate() error {
	if s.Node == "" || s.Instance == "" || strings.ContainsRune(s.Instance, '.') || len(s.String()) > maxServerBytes {
		return fmt.Errorf("quorum: server %q: want a node and an instance without a dot, together at most %d bytes",
			s.String(), maxServerBytes)
	}
	return nil
}

// maxServerBytes bounds a server's id.
const maxServerBytes = 256
