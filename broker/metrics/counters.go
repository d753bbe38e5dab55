package metrics

import "github.com/prometheus/client_golang/prometheus"

// other is the label value of what is in no closed set.
const other = "other"

// Counters is one counter per value of a closed set of label values. All of
// them exist from the start, so that a rate is right from the first event.
type Counters[L ~string] struct {
	byValue map[L]prometheus.Counter
	vec     *prometheus.CounterVec
}

// With returns the counter for a label value; a value outside the set counts as
// "other", which is exported once there was one. A hot path may keep what it returns.
func (c Counters[L]) With(value L) prometheus.Counter {
	if found, ok := c.byValue[value]; ok {
		return found
	}
	return c.vec.WithLabelValues(other)
}

func counters[L ~string](b *builder, name, help, label string, values []L) Counters[L] {
	vec := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
	b.add(vec)
	c := Counters[L]{byValue: make(map[L]prometheus.Counter, len(values)), vec: vec}
	for _, v := range values {
		c.byValue[v] = vec.WithLabelValues(string(v))
	}
	return c
}
