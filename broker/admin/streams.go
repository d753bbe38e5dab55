package admin

import (
	"cmp"
	"net/http"
	"net/url"
	"strconv"
)

// CreateRequest is the body of POST /v1/streams.
type CreateRequest struct {
	// RequestID makes a retry of the same request a success. May be empty; then
	// only a retry with the same settings is.
	RequestID string     `json:"request_id,omitempty"`
	Spec      StreamSpec `json:"spec"`
}

// StreamList is the answer of GET /v1/streams.
type StreamList struct {
	Streams []Stream `json:"streams"`
	// Next is the value of after for the next page; empty: this was the last.
	Next string `json:"next,omitempty"`
}

// maxPage bounds what one list answers with.
const maxPage = 1000

// maxRequestID bounds what the catalog has to keep of a request.
const maxRequestID = 128

// namespaceDefault is the namespace of a stream that names none.
const namespaceDefault = "default"

// pathName reads the stream's name from the path.
func pathName(r *http.Request) (Name, error) {
	n := Name{Tenant: r.PathValue("tenant"), Namespace: r.PathValue("namespace"), Stream: r.PathValue("stream")}
	if err := n.CatalogName().Validate(); err != nil {
		return Name{}, invalid("%v", err)
	}
	return n, nil
}

func (s *Server) createStream(w http.ResponseWriter, r *http.Request, p Principal) error {
	var req CreateRequest
	if err := readJSON(r, &req); err != nil {
		return err
	}
	if req.Spec.Namespace == "" {
		req.Spec.Namespace = namespaceDefault // before the permission is looked up for it
	}
	name := req.Spec.Name
	if err := name.CatalogName().Validate(); err != nil {
		return invalid("%v", err)
	}
	if err := requireManage(p, name); err != nil {
		return err
	}
	if len(req.RequestID) > maxRequestID {
		return invalid("request_id is longer than %d bytes", maxRequestID)
	}
	st, created, err := s.cfg.Streams.CreateStream(r.Context(), req.Spec, req.RequestID)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
		s.cfg.Log.Info("stream created", "stream", name.String(), "incarnation", st.Incarnation, "by", p.ID())
	}
	w.Header().Set("Location", "/v1/streams/"+name.String())
	writeJSON(w, status, st)
	return nil
}

// listStreams answers with a page of the streams that the caller may see.
func (s *Server) listStreams(w http.ResponseWriter, r *http.Request, p Principal) error {
	q := r.URL.Query()
	limit, err := limitOf(q, maxPage)
	if err != nil {
		return err
	}
	var after Name // the zero name comes before all others
	if text := q.Get("after"); text != "" {
		if after, err = parseName(text); err != nil {
			return err
		}
	}
	all, err := s.cfg.Streams.Streams(r.Context())
	if err != nil {
		return err
	}
	tenant, namespace := q.Get("tenant"), q.Get("namespace")
	page := StreamList{Streams: []Stream{}}
	for _, st := range all {
		n := st.Spec.Name
		if compareNames(n, after) <= 0 || tenant != "" && n.Tenant != tenant || namespace != "" && n.Namespace != namespace || !mayRead(p, n) {
			continue
		}
		if len(page.Streams) == limit {
			page.Next = page.Streams[limit-1].Spec.String()
			break
		}
		page.Streams = append(page.Streams, st)
	}
	writeJSON(w, http.StatusOK, page)
	return nil
}

func (s *Server) stream(w http.ResponseWriter, r *http.Request, p Principal) error {
	name, err := pathName(r)
	if err != nil {
		return err
	}
	if !mayRead(p, name) {
		return forbidden("stream.subscribe or stream.manage", name)
	}
	st, err := s.cfg.Streams.Stream(r.Context(), name)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, st)
	return nil
}

func (s *Server) updateStream(w http.ResponseWriter, r *http.Request, p Principal) error {
	name, err := pathName(r)
	if err != nil {
		return err
	}
	if err := requireManage(p, name); err != nil {
		return err
	}
	var change StreamChange
	if err := readJSON(r, &change); err != nil {
		return err
	}
	st, err := s.cfg.Streams.UpdateStream(r.Context(), name, change)
	if err != nil {
		return err
	}
	s.cfg.Log.Info("stream changed", "stream", name.String(), "by", p.ID())
	writeJSON(w, http.StatusOK, st)
	return nil
}

func (s *Server) deleteStream(w http.ResponseWriter, r *http.Request, p Principal) error {
	name, err := pathName(r)
	if err != nil {
		return err
	}
	if err := requireManage(p, name); err != nil {
		return err
	}
	if err := s.cfg.Streams.DeleteStream(r.Context(), name); err != nil {
		return err
	}
	s.cfg.Log.Info("stream deleted", "stream", name.String(), "by", p.ID())
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// limitOf reads the limit parameter; absent it is most.
func limitOf(q url.Values, most int) (int, error) {
	text := q.Get("limit")
	if text == "" {
		return most, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, invalid("limit %q: want a number from 1 to %d", text, most)
	}
	return min(n, most), nil
}

// compareNames is the order of lists. A page goes on behind the name that the
// last one ended with, also when that stream is gone by now.
func compareNames(a, b Name) int {
	return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Stream, b.Stream))
}
