package metrics

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

const docFile = "../../docs/metrics.md"

// documented reads the table rows of docs/metrics.md: name to the columns.
func documented(t *testing.T) map[string][]string {
	t.Helper()
	data, err := os.ReadFile(docFile)
	if err != nil {
		t.Fatal(err)
	}
	rows := make(map[string][]string)
	for line := range strings.Lines(string(data)) {
		if !strings.HasPrefix(line, "| `felix_") {
			continue
		}
		var cells []string
		for cell := range strings.SplitSeq(strings.Trim(strings.TrimSpace(line), "|"), "|") {
			cells = append(cells, strings.TrimSpace(cell))
		}
		name := strings.Trim(cells[0], "`")
		if _, twice := rows[name]; twice {
			t.Errorf("%s has two lines", name)
		}
		if len(cells) != 6 {
			t.Errorf("%s: got %d columns, want 6", name, len(cells))
			continue
		}
		rows[name] = cells
	}
	return rows
}

// described is what the code says of a metric.
type described struct {
	Type, Labels, Meaning string
}

var descPattern = regexp.MustCompile(`^Desc\{fqName: "(.*?)", help: "(.*?)", unit: ".*?", constLabels: \{\}, variableLabels: \{(.*)\}\}$`)

// everything gathers every metric there is, with its type, labels and help.
func everything(t *testing.T) map[string]described {
	t.Helper()
	reg := prometheus.NewRegistry()
	rec := &recorder{Registerer: reg}
	m, err := New(rec)
	if err != nil {
		t.Fatal(err)
	}
	m.SetBuild("v", "r", "go")
	src := &fakeSource{
		state:   State{CertificateExpiry: time.Unix(1, 0)},
		streams: []StreamState{{Stream: "t/n/s"}},
		subs:    []SubscriptionState{{ID: 1, Stream: "t/n/s", State: "live", LagRecords: 1}},
	}
	if err := m.CollectCluster(func() ClusterState { return ClusterState{} }); err != nil {
		t.Fatal(err)
	}
	if err := m.Collect(src, CollectorConfig{}); err != nil {
		t.Fatal(err)
	}
	out := make(map[string]described)
	for _, d := range rec.descs {
		m := descPattern.FindStringSubmatch(d)
		if m == nil {
			t.Fatalf("cannot read %s", d)
		}
		labels := strings.FieldsFunc(m[3], func(r rune) bool { return r == ',' })
		slices.Sort(labels)
		out[m[1]] = described{Labels: strings.Join(labels, ", "), Meaning: m[2]}
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		d, ok := out[f.GetName()]
		if !ok {
			t.Errorf("%s is gathered but not described", f.GetName())
		}
		d.Type = strings.ToLower(f.GetType().String())
		out[f.GetName()] = d
	}
	return out
}

// recorder remembers the descriptions of what is registered.
type recorder struct {
	prometheus.Registerer
	descs []string
}

func (r *recorder) Register(c prometheus.Collector) error {
	ch := make(chan *prometheus.Desc, 100)
	c.Describe(ch)
	close(ch)
	for d := range ch {
		r.descs = append(r.descs, d.String())
	}
	return r.Registerer.Register(c)
}

func TestEveryMetricIsDocumented(t *testing.T) {
	docs, code := documented(t), everything(t)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(docs)), slices.Sorted(maps.Keys(code))); diff != "" {
		t.Fatalf("%s and the code name different metrics (-docs +code):\n%s", docFile, diff)
	}
	for name, c := range code {
		row := docs[name]
		var labels []string
		for _, l := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(row[3], -1) {
			labels = append(labels, l[1])
		}
		slices.Sort(labels)
		got := described{Type: row[1], Labels: strings.Join(labels, ", "), Meaning: row[5]}
		if diff := cmp.Diff(got, c); diff != "" {
			t.Errorf("%s (-docs +code):\n%s", name, diff)
		}
	}
}

func TestNamesFollowTheRules(t *testing.T) {
	docs := documented(t)
	for name, c := range everything(t) {
		if !strings.HasPrefix(name, "felix_") {
			t.Errorf("%s has no felix_ prefix", name)
		}
		if (c.Type == "counter") != strings.HasSuffix(name, "_total") {
			t.Errorf("%s is a %s", name, c.Type)
		}
		for _, unit := range []string{"bytes", "seconds"} {
			if (docs[name][2] == unit) != strings.Contains(name, "_"+unit) {
				t.Errorf("%s has unit %q", name, docs[name][2])
			}
		}
	}
}

// The documents list the values of every closed label set.
func TestLabelValuesAreDocumented(t *testing.T) {
	data, err := os.ReadFile(docFile)
	if err != nil {
		t.Fatal(err)
	}
	families, err := newRegistry(t, &fakeSource{}, CollectorConfig{}).Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if !strings.Contains(string(data), fmt.Sprintf("`%s`", l.GetValue())) {
					t.Errorf("%s: value %q of label %s is not in %s", f.GetName(), l.GetValue(), l.GetName(), docFile)
				}
			}
		}
	}
}
