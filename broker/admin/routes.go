package admin

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"
)

// handler answers a request or returns the error to answer with.
type handler func(http.ResponseWriter, *http.Request) error

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/metrics", s.methods(map[string]handler{http.MethodGet: s.metrics()}))
	mux.Handle("/healthz", s.methods(map[string]handler{http.MethodGet: s.healthz}))
	mux.Handle("/readyz", s.methods(map[string]handler{http.MethodGet: s.readyz}))
	mux.Handle("/v1/streams", s.methods(map[string]handler{
		http.MethodGet:  s.authenticated(s.listStreams),
		http.MethodPost: s.authenticated(s.createStream),
	}))
	mux.Handle("/v1/streams/{tenant}/{namespace}/{stream}", s.methods(map[string]handler{
		http.MethodGet:    s.authenticated(s.stream),
		http.MethodPatch:  s.authenticated(s.updateStream),
		http.MethodDelete: s.authenticated(s.deleteStream),
	}))
	mux.Handle("/v1/subscriptions", s.methods(map[string]handler{
		http.MethodGet: s.authenticated(s.listSubscriptions),
	}))
	mux.Handle("/v1/subscriptions/{id}", s.methods(map[string]handler{
		http.MethodDelete: s.authenticated(s.endSubscription),
	}))
	s.clusterRoutes(mux)
	mux.Handle("/", s.wrap(func(_ http.ResponseWriter, r *http.Request) error {
		return notFound("no such path: %s", r.URL.Path)
	}))
	return mux
}

// methods chooses a handler by method, so that a wrong method is answered like
// any other error.
func (s *Server) methods(by map[string]handler) http.Handler {
	if get := by[http.MethodGet]; get != nil {
		by[http.MethodHead] = get
	}
	allowed := strings.Join(slices.Sorted(maps.Keys(by)), ", ")
	return s.wrap(func(w http.ResponseWriter, r *http.Request) error {
		h := by[r.Method]
		if h == nil {
			w.Header().Set("Allow", allowed)
			e := invalid("method %s is not allowed here", r.Method)
			e.Status = http.StatusMethodNotAllowed
			return e
		}
		return h(w, r)
	})
}

// wrap bounds the body and writes the error, if there is one.
func (s *Server) wrap(h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, s.cfg.MaxBodyBytes)
		err := h(w, r)
		if err == nil {
			return
		}
		e := toError(err)
		if e.Code == CodeInternal || e.Code == CodeStorage {
			s.cfg.Log.Error("admin request failed", "method", r.Method, "path", r.URL.Path, "remote", r.RemoteAddr, "error", err)
		}
		e.write(w)
	})
}

// readJSON reads the body into v. A field that is not known is an error: it is a
// setting that would silently not be made.
func readJSON(r *http.Request, v any) error {
	if ct := r.Header.Get("Content-Type"); ct != "" {
		if kind, _, err := mime.ParseMediaType(ct); err != nil || kind != "application/json" {
			e := invalid("content type %q: want application/json", ct)
			e.Status = http.StatusUnsupportedMediaType
			return e
		}
	}
	dec := json.NewDecoder(r.Body)
	dec.DisallowUnknownFields()
	err := dec.Decode(v)
	if err == nil {
		if _, extra := dec.Token(); !errors.Is(extra, io.EOF) {
			err = errors.New("there is more after the object")
		}
	}
	if err == nil {
		return nil
	}
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		e := invalid("body is larger than %d bytes", large.Limit)
		e.Status = http.StatusRequestEntityTooLarge
		return e
	}
	return invalid("body: %v", err)
}

// writeJSON writes an answer. Who has gone away does not get it.
func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the status is out: there is nobody left to tell
}
