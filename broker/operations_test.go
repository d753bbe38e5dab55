package broker

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func document(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// settings lists the fields of a configuration by the names that they have in a file.
func settings(v reflect.Value, prefix string, yield func(name string, v reflect.Value)) {
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		switch f := v.Field(i); {
		case name == "-":
		case f.Kind() == reflect.Struct:
			settings(f, prefix+name+".", yield)
		case f.Kind() == reflect.Pointer:
			yield(prefix+name, f)
			settings(f.Elem(), prefix+name+".", yield)
		default:
			yield(prefix+name, f)
		}
	}
}

// Every setting is in the table of docs/configuration.md, with the default that it has.
func TestConfigurationIsDocumented(t *testing.T) {
	_, text, ok := strings.Cut(document(t, "configuration.md"), "\n## Fields\n")
	if !ok {
		t.Fatal("there is no section on the fields")
	}
	text, _, _ = strings.Cut(text, "\n## ")
	defaults := map[string]string{}
	var documented []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_.]+)` \\| (.*?) ?\\|").FindAllStringSubmatch(text, -1) {
		documented = append(documented, row[1])
		defaults[row[1]] = strings.Trim(row[2], "`")
	}
	var known []string
	settings(reflect.ValueOf(Config{Cluster: new(Cluster)}.Effective()), "", func(name string, v reflect.Value) {
		known = append(known, name)
		b, err := yaml.Marshal(v.Interface())
		if err != nil {
			t.Fatal(err)
		}
		is, said := strings.Trim(strings.TrimSpace(string(b)), `"`), defaults[name]
		// What is no value says how the default is found.
		value := regexp.MustCompile(`^[0-9:]|^(true|false)$|^[A-Z][A-Za-z]+$`)
		if value.MatchString(said) && is != inBytes(said) {
			t.Errorf("%s: its default is %s, the document says %s", name, is, said)
		}
	})
	slices.Sort(known)
	slices.Sort(documented)
	if diff := cmp.Diff(known, documented); diff != "" {
		t.Errorf("settings (-code +document):\n%s", diff)
	}
}

// inBytes reads "64 MiB" and "16 MiB − 24" as numbers of bytes, and leaves anything else.
func inBytes(s string) string {
	m := regexp.MustCompile(`^(\d+) (KiB|MiB|GiB)(?: − (\d+))?$`).FindStringSubmatch(s)
	if m == nil {
		return s
	}
	n, err := strconv.Atoi(m[1])
	less, _ := strconv.Atoi(m[3]) // none: 0
	if err != nil {
		return s
	}
	return strconv.Itoa(n<<map[string]int{"KiB": 10, "MiB": 20, "GiB": 30}[m[2]] - less)
}

// What the document tells to watch is there to be watched.
func TestAlertsNameMetrics(t *testing.T) {
	metrics := document(t, "metrics.md")
	name := regexp.MustCompile(`felix_[a-z_]+`)
	for _, m := range name.FindAllString(document(t, "operations.md"), -1) {
		if !strings.Contains(metrics, "`"+strings.TrimSuffix(m, "_bucket")+"`") {
			t.Errorf("%s is no metric", m)
		}
	}
}

// What is not set is filled in as it is used, and what is set stays.
func TestEffective(t *testing.T) {
	c := Config{Auth: Auth{Keys: map[string]string{"t": "f"}}, DataDir: "d", Limits: Limits{Connections: 10}, Streams: StreamDefaults{OnFull: "Block"}}
	e := c.Effective()
	if e.Limits.Connections != 10 || e.Limits.ConnectionsPerAddress != 5 || e.Streams.OnFull != "Block" || e.Streams.BlockTimeout == 0 || e.Egress.Lanes == 0 {
		t.Errorf("got %+v", e)
	}
	if err := e.Validate(); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(e.Limits, e.Effective().Limits); diff != "" {
		t.Error(diff)
	}
}
