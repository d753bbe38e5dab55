package broker

import (
	"context"
	"errors"

	"felix.dev/felix/broker/catalog"
)

// create makes a stream, or finds it made. One that could not be opened before is
// tried again.
func (s *streams) create(_ context.Context, spec catalog.StreamSpec, requestID string) (v *served, created bool, err error) {
	s.changing.Lock()
	defer s.changing.Unlock()
	if s.closed {
		return nil, false, errClosing
	}
	spec = spec.Normalized()
	if err := s.checkSpec(&spec); err != nil {
		return nil, false, err
	}
	e, created, err := s.catalog.Create(spec, requestID)
	if err != nil {
		return nil, false, err
	}
	if v, err := s.lookup(spec.Name); err == nil && v.stream != nil && v.entry.Incarnation == e.Incarnation {
		return v, created, nil
	}
	v = s.opener.open(&e, created)
	s.publish(spec.Name, v)
	if v.stream == nil {
		return nil, false, v.refusal
	}
	return v, created, nil
}

// checkSpec refuses what the catalog allows and this broker cannot do.
func (s *streams) checkSpec(spec *catalog.StreamSpec) error {
	var errs []error
	if spec.Durability == catalog.Durable && s.opener.dataDir == "" {
		errs = append(errs, errors.New("a durable stream needs a broker with a data directory"))
	}
	if keepsByAge(spec) {
		errs = append(errs, errKeepsByAge)
	}
	if len(errs) == 0 {
		return nil
	}
	return &catalog.InvalidError{Name: spec.Name, Err: errors.Join(errs...)}
}

var errKeepsByAge = errors.New("a memory stream keeps by bytes, not by age")

// keepsByAge says whether a memory stream is to do what none can.
func keepsByAge(spec *catalog.StreamSpec) bool {
	return spec.Durability == catalog.Memory && spec.Retention.MaxAge != 0
}
