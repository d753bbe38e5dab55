package bench

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func writeFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "report.json")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestCompare(t *testing.T) {
	a := writeFile(t, `{"scenario":"fanout","version":"v1","msgs_per_s":100,"p99_us":50,"delivered":7,"params":{"size":256,"seed":1}}
{"scenario":"fanout","version":"v1","msgs_per_s":300,"p99_us":70,"params":{"size":256,"seed":2}}
{"scenario":"fanout","version":"v1","msgs_per_s":200,"p99_us":60,"params":{"size":256,"seed":3}}
`)
	b := writeFile(t, `{"scenario": "fanout", "version": "v2",
  "msgs_per_s": 300, "p99_us": 90, "delivered": 7, "slow": {"healthy_rate_kept": 0.95}, "params": {"size": 4096}}`)
	var out strings.Builder
	if err := compare(&out, a, b); err != nil {
		t.Fatal(err)
	}
	for _, want := range [][]string{
		{"(v1, 3 runs)"},
		{"(v2, 1 runs)"},
		{"run differently: size: 256, 4096"},
		{"msgs_per_s", "200", "300", "1.500", "better"},
		{"p99_us", "60", "90", "1.500", "worse"},
		{"delivered", "7", "7", "1.000"},
		{"slow.healthy_rate_kept", "-", "0.95"},
	} {
		if !hasLine(out.String(), want) {
			t.Errorf("no line with %q in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "mb_per_s") {
		t.Errorf("a metric that nobody has:\n%s", out.String())
	}
}

func hasLine(text string, parts []string) bool {
	for line := range strings.Lines(text) {
		all := true
		for _, p := range parts {
			all = all && strings.Contains(line, p)
		}
		if all {
			return true
		}
	}
	return false
}

func TestCompareRefuses(t *testing.T) {
	fanout := writeFile(t, `{"scenario":"fanout"}`)
	for name, other := range map[string]string{
		"another scenario": writeFile(t, `{"scenario":"publish"}`),
		"empty":            writeFile(t, ""),
		"no report":        writeFile(t, `{"a":1}`),
		"broken":           writeFile(t, `{"scenario":"fanout"} {`),
		"missing":          filepath.Join(t.TempDir(), "none"),
	} {
		if err := compare(&strings.Builder{}, fanout, other); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 123456: "123456", 0.123456: "0.1235", 12345.6: "12346", -2: "-2"} {
		if got := number(v); got != want {
			t.Errorf("number(%v) = %q, want %q", v, got, want)
		}
	}
}
