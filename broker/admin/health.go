package admin

import (
	"net/http"
)

// healthz says whether the process is worth keeping. It depends on nothing that
// a restart would not mend.
func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) error {
	check, status := Check{Name: "live", Ready: true}, http.StatusOK
	if s.cfg.Liveness != nil {
		if err := s.cfg.Liveness(); err != nil {
			check, status = Check{Name: "live", Message: err.Error()}, http.StatusServiceUnavailable
		}
	}
	writeJSON(w, status, check)
	return nil
}

// readyz says whether the broker should be sent clients, and what it waits for.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) error {
	out := Readiness{Ready: true, Checks: []Check{}}
	if s.cfg.Readiness != nil {
		out.Checks = append(out.Checks, s.cfg.Readiness(r.Context())...)
	}
	for _, c := range out.Checks {
		out.Ready = out.Ready && c.Ready
	}
	status := http.StatusOK
	if !out.Ready {
		status = http.StatusServiceUnavailable
	}
	writeJSON(w, status, out)
	return nil
}
