package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"felix.dev/felix/cmd/felix/internal/term"
)

// better says which direction of a metric is the good one.
type better int8

const (
	neither better = iota
	higher
	lower
)

// compared are the metrics of a comparison, in order. Those that neither side has
// are left out.
var compared = []struct {
	key  string
	good better
}{
	{"msgs_per_s", higher},
	{"mb_per_s", higher},
	{"published_per_s", higher},
	{"p50_us", lower},
	{"p99_us", lower},
	{"p999_us", lower},
	{"max_us", lower},
	{"broker_cpu_s_per_mdeliveries", lower},
	{"broker.switches_per_delivery", lower},
	{"broker.mallocs_per_delivery", lower},
	{"broker_rss_idle_bytes", lower},
	{"broker_rss_peak_bytes", lower},
	{"client_cpu_s", neither},
	{"delivered", neither},
	{"dropped", lower},
	{"lagged", lower},
	{"refused", lower},
	{"unaccounted", lower},
	{"slow.msgs_per_s_per_reader", higher},
	{"slow.healthy_rate_kept", higher},
	{"slow.broker_rss_difference_bytes", lower},
	{"idle.broker_rss_bytes_per_subscription", lower},
}

// object is a decoded report.
type object = map[string]any

// readReports reads one or more reports from a file, one JSON object after another.
func readReports(name string) ([]object, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("bench: compare: %w", err)
	}
	var out []object
	for d := json.NewDecoder(bytes.NewReader(b)); ; {
		var o object
		switch err := d.Decode(&o); {
		case errors.Is(err, io.EOF) && len(out) > 0:
			return out, nil
		case err != nil:
			return nil, fmt.Errorf("bench: compare: %s: report %d: %w", name, len(out)+1, err)
		}
		if _, ok := o["scenario"].(string); !ok {
			return nil, fmt.Errorf("bench: compare: %s: report %d is none of felix bench", name, len(out)+1)
		}
		out = append(out, o)
	}
}

// lookup finds the value of a dotted key.
func lookup(o object, key string) (any, bool) {
	var v any = o
	for part := range strings.SplitSeq(key, ".") {
		inner, ok := v.(object)
		if !ok {
			return nil, false
		}
		if v, ok = inner[part]; !ok {
			return nil, false
		}
	}
	return v, true
}

// medianOf is the median of a key's numbers over reports.
func medianOf(reports []object, key string) (float64, bool) {
	var all []float64
	for _, o := range reports {
		v, _ := lookup(o, key)
		if f, ok := v.(float64); ok {
			all = append(all, f)
		}
	}
	if len(all) == 0 {
		return 0, false
	}
	return median(all), true
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// differences are the parameters in which the sides were run differently.
func differences(a, b object) []string {
	pa, _ := a["params"].(object)
	pb, _ := b["params"].(object)
	keys := map[string]bool{}
	for k := range pa {
		keys[k] = true
	}
	for k := range pb {
		keys[k] = true
	}
	delete(keys, "seed")
	var out []string
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		va, vb := pa[k], pb[k]
		if fmt.Sprint(va) != fmt.Sprint(vb) {
			out = append(out, fmt.Sprintf("%s: %v, %v", k, va, vb))
		}
	}
	return out
}

// compare prints both sides and their ratio.
func compare(w io.Writer, nameA, nameB string) error {
	a, err := readReports(nameA)
	if err != nil {
		return err
	}
	b, err := readReports(nameB)
	if err != nil {
		return err
	}
	if sa, sb := a[0]["scenario"], b[0]["scenario"]; sa != sb {
		return fmt.Errorf("bench: compare: scenario %v cannot be compared with %v", sa, sb)
	}
	fmt.Fprintf(w, "A: %s (%v, %d runs)\nB: %s (%v, %d runs)\n", nameA, a[0]["version"], len(a), nameB, b[0]["version"], len(b))
	if d := differences(a[0], b[0]); len(d) > 0 {
		fmt.Fprintln(w, "run differently: "+strings.Join(d, "; "))
	}
	t := term.NewTable(fmt.Sprint(a[0]["scenario"]), ">A", ">B", ">B/A", "B IS")
	for _, m := range compared {
		va, okA := medianOf(a, m.key)
		vb, okB := medianOf(b, m.key)
		if okA || okB {
			t.Row(comparison(m.key, m.good, va, vb, okA, okB)...)
		}
	}
	return t.Write(w)
}

func comparison(key string, good better, a, b float64, okA, okB bool) []any {
	row := []any{key, "-", "-", "", ""}
	if okA {
		row[1] = number(a)
	}
	if okB {
		row[2] = number(b)
	}
	if !okA || !okB {
		return row
	}
	if a != 0 {
		row[3] = fmt.Sprintf("%.3f", b/a)
	}
	switch {
	case a == b || good == neither:
	case (b > a) == (good == higher):
		row[4] = "better"
	default:
		row[4] = "worse"
	}
	return row
}

// number writes a value with four digits, and whole numbers as they are.
func number(v float64) string {
	if v == float64(int64(v)) || v >= 1e4 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.4g", v)
}
