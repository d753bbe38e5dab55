package cli

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"felix.dev/felix/broker"
	"felix.dev/felix/broker/admin"
)

func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// fields are the names of a type's fields in JSON, below a prefix if within is true, each once.
func fields(of reflect.Type, within bool, prefix string, found map[string]bool) {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || of.PkgPath() == "time" {
		return
	}
	for f := range of.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-":
			continue
		case f.Anonymous && name == "":
			fields(f.Type, within, prefix, found)
			continue
		}
		below := map[string]bool{}
		fields(f.Type, within, "", below)
		if !within || len(below) == 0 || f.Type.Kind() == reflect.Pointer { // one may be there or not
			found[prefix+name] = true
		}
		for b := range below {
			if within {
				b = name + "." + b
			}
			found[prefix+b] = true
		}
	}
}

// TestConfigurationPage holds docs/configuration.md to the fields of the configuration, both ways.
func TestConfigurationPage(t *testing.T) {
	want, got := map[string]bool{}, map[string]bool{}
	fields(reflect.TypeFor[broker.Config](), true, "", want)
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_.]+)` \\|").FindAllStringSubmatch(page(t, "configuration.md"), -1) {
		got[row[1]] = true
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("docs/configuration.md has other fields than broker.Config (-code +page)\n%s", d)
	}
}

// TestConfigurationExample reads the example of docs/configuration.md as a broker would.
func TestConfigurationExample(t *testing.T) {
	_, rest, _ := strings.Cut(page(t, "configuration.md"), "```yaml\n")
	text, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("there is none")
	}
	file := filepath.Join(t.TempDir(), "broker.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := broker.ReadConfig(file)
	if err == nil {
		err = cfg.Validate()
	}
	if err != nil {
		t.Error(err)
	}
}

// TestJSONPage holds docs/cli.md to what commands print as JSON: every field is there.
func TestJSONPage(t *testing.T) {
	text := page(t, "cli.md")
	for _, of := range []reflect.Type{
		reflect.TypeFor[jsonRecord](), reflect.TypeFor[admin.Stream](), reflect.TypeFor[admin.SubscriptionList](), reflect.TypeFor[admin.ClusterStatus](),
		reflect.TypeFor[inspected](), reflect.TypeFor[shownSetting](), reflect.TypeFor[shownToken](), reflect.TypeFor[versionInfo](),
	} {
		names := map[string]bool{}
		fields(of, false, "", names)
		if len(names) == 0 {
			t.Errorf("%s has no fields", of)
		}
		for name := range names {
			if !strings.Contains(text, "`"+name+"`") {
				t.Errorf("docs/cli.md says nothing of %q of %s", name, of)
			}
		}
	}
}
