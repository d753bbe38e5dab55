package broker_test

import (
	"maps"
	"slices"
	"strings"
)

// series are the values of one scrape by name and labels, as `name{label="value"}`; of
// a histogram it is the count.
type series map[string]float64

func (n *node) scrape() series {
	n.t.Helper()
	families, err := n.reg.Gather()
	if err != nil {
		n.t.Fatal(err)
	}
	out := series{}
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "felix_") {
			continue
		}
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+`="`+l.GetValue()+`"`)
			}
			key := f.GetName()
			if labels != nil {
				key += "{" + strings.Join(labels, ",") + "}"
			}
			out[key] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	if n.note != nil {
		n.note(out)
	}
	return out
}

// nameOf is a series without its labels.
func nameOf(s string) string {
	name, _, _ := strings.Cut(s, "{")
	return name
}

// since is how much a series has grown since the broker started.
func (n *node) since(s string) float64 { return n.scrape()[s] - n.fresh[s] }

// want checks how much series have grown since the broker started.
func (n *node) want(grown series) {
	n.t.Helper()
	now := n.scrape()
	for _, s := range slices.Sorted(maps.Keys(grown)) {
		if got := now[s] - n.fresh[s]; got != grown[s] {
			n.t.Errorf("%s grew by %v, want %v", s, got, grown[s])
		}
	}
}
