package admin

import (
	"net/http"
	"strconv"

	"felix.dev/felix/broker/auth"
)

// ClusterRequest is the body of what changes something about the cluster. A body
// may be left out where all of it is optional.
type ClusterRequest struct {
	// RequestID is for the logs: all of these requests can be sent again, and what
	// is done already is a success.
	RequestID string `json:"request_id,omitempty"`
	From      string `json:"from,omitempty"` // node that a replica leaves
	To        string `json:"to,omitempty"`   // node that takes a replica or a leadership
}

// clusterResource is what permissions on the cluster are about.
const clusterResource = "cluster"

// clusterPrincipal is a Principal that may look at the cluster or change it. Who
// is none may do neither.
type clusterPrincipal interface {
	AllowsCluster(change bool) bool
}

// AllowsCluster is for the system's tenant: tenant.manage on "cluster" changes it,
// stream.manage on it is enough to look.
func (t tokenPrincipal) AllowsCluster(change bool) bool {
	return t.everywhere && (t.p.Allows(auth.TenantManage, clusterResource) || !change && t.p.Allows(auth.StreamManage, clusterResource))
}

func (s *Server) clusterRoutes(mux *http.ServeMux) {
	post := func(do func(r *http.Request, req *ClusterRequest) error) http.Handler {
		return s.methods(map[string]handler{http.MethodPost: s.authenticated(s.changeCluster(do))})
	}
	c := s.cfg.Cluster
	mux.Handle("/v1/cluster", s.methods(map[string]handler{http.MethodGet: s.authenticated(s.clusterStatus)}))
	mux.Handle("/v1/cluster/balance", post(func(r *http.Request, _ *ClusterRequest) error { return c.BalanceLeaders(r.Context()) }))
	mux.Handle("/v1/cluster/brokers/{node}", s.methods(map[string]handler{
		http.MethodDelete: s.authenticated(s.changeCluster(func(r *http.Request, _ *ClusterRequest) error {
			force, err := forceOf(r)
			if err != nil {
				return err
			}
			return c.RemoveBroker(r.Context(), r.PathValue("node"), force)
		})),
	}))
	mux.Handle("/v1/cluster/brokers/{node}/drain", post(func(r *http.Request, _ *ClusterRequest) error {
		return c.SetDraining(r.Context(), r.PathValue("node"), true)
	}))
	mux.Handle("/v1/cluster/brokers/{node}/undrain", post(func(r *http.Request, _ *ClusterRequest) error {
		return c.SetDraining(r.Context(), r.PathValue("node"), false)
	}))
	mux.Handle("/v1/cluster/groups/{group}/move", post(func(r *http.Request, req *ClusterRequest) error {
		group, err := groupOf(r)
		if err != nil {
			return err
		}
		if req.From == "" || req.To == "" {
			return invalid("want from and to, both of them brokers")
		}
		return c.MoveReplica(r.Context(), group, req.From, req.To)
	}))
	mux.Handle("/v1/cluster/groups/{group}/transfer", post(func(r *http.Request, req *ClusterRequest) error {
		group, err := groupOf(r)
		if err != nil {
			return err
		}
		return c.TransferLeader(r.Context(), group, req.To)
	}))
}

// clusterStatus shows the cluster.
func (s *Server) clusterStatus(w http.ResponseWriter, r *http.Request, p Principal) error {
	if err := s.requireCluster(p, false); err != nil {
		return err
	}
	st, err := s.cfg.Cluster.ClusterStatus(r.Context())
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, st)
	return nil
}

// changeCluster reads the body, has it done, and says so without words.
func (s *Server) changeCluster(do func(*http.Request, *ClusterRequest) error) func(http.ResponseWriter, *http.Request, Principal) error {
	return func(w http.ResponseWriter, r *http.Request, p Principal) error {
		if err := s.requireCluster(p, true); err != nil {
			return err
		}
		var req ClusterRequest
		if r.ContentLength != 0 {
			if err := readJSON(r, &req); err != nil {
				return err
			}
		}
		if len(req.RequestID) > maxRequestID {
			return invalid("request_id is longer than %d bytes", maxRequestID)
		}
		err := do(r, &req)
		s.cfg.Log.Info("change of the cluster", "path", r.URL.Path, "method", r.Method, "from", req.From, "to", req.To,
			"request", req.RequestID, "by", p.ID(), "error", err)
		if err != nil {
			return err
		}
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
}

// requireCluster decides on the permission before it says whether there is a
// cluster.
func (s *Server) requireCluster(p Principal, change bool) error {
	who, ok := p.(clusterPrincipal)
	if !ok || !who.AllowsCluster(change) {
		need := string(auth.TenantManage)
		if !change {
			need = string(auth.StreamManage) + " or " + need
		}
		return &Error{
			Status: http.StatusForbidden, Code: CodeForbidden, Retry: RetryFatal,
			Message: "this needs " + need + " on " + clusterResource + ", of the system's tenant (auth.system_tenant)",
		}
	}
	if s.cfg.Cluster == nil {
		return notFound("this broker is not part of a cluster")
	}
	return nil
}

func groupOf(r *http.Request) (uint32, error) {
	n, err := strconv.ParseUint(r.PathValue("group"), 10, 32)
	if err != nil {
		return 0, invalid("group %q: want a number", r.PathValue("group"))
	}
	return uint32(n), nil
}

func forceOf(r *http.Request) (bool, error) {
	switch text := r.URL.Query().Get("force"); text {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	default:
		return false, invalid("force %q: want true or false", text)
	}
}
