package house

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestArrows holds docs/design.md's picture against the code: inside broker/ arrows only point down.
func TestArrows(t *testing.T) {
	standard := map[string]bool{}
	var packages []pkg
	for _, p := range list(t, "-deps", "./...") {
		if p.Standard {
			standard[p.ImportPath] = true
			continue
		}
		packages = append(packages, p.pkg)
	}
	for _, broken := range brokenArrows(packages, standard) {
		t.Error(broken)
	}
}

func TestBrokenArrows(t *testing.T) {
	standard := map[string]bool{"io": true, "testing": true, "net/http": true}
	for _, c := range []struct {
		name, from string
		imports    []string
		want       []string
	}{
		{name: "down", from: "broker/stream", imports: []string{"io", module + "/broker/seglog", module + "/broker/wire"}},
		{name: "down by two", from: "broker/server", imports: []string{module + "/broker/auth", "github.com/quic-go/quic-go"}},
		{name: "own folder", from: "broker/seglog/segment", imports: []string{module + "/broker/seglog"}},
		{name: "assembly", from: "broker", imports: []string{module + "/broker/server", module + "/broker/admin"}},
		{name: "tests and tools are free", from: "test/chaos", imports: []string{module + "/broker/server", "testing"}},
		{name: "somebody else's module", from: "client", imports: []string{"github.com/quic-go/quic-go"}},
		{
			name: "up", from: "broker/stream", imports: []string{module + "/broker/egress"},
			want: []string{"broker/stream imports broker/egress: arrows point down, and broker/egress is not below broker/stream"},
		},
		{
			name: "sideways", from: "broker/server", imports: []string{module + "/broker/admin"},
			want: []string{"broker/server imports broker/admin: arrows point down, and broker/admin is not below broker/server"},
		},
		{
			name: "client into the broker", from: "client", imports: []string{module + "/broker/seglog"},
			want: []string{"client imports broker/seglog: client may import of the house only [broker/wire broker/wire/frameio broker/udp]"},
		},
		{
			name: "wire with a module", from: "broker/wire", imports: []string{"golang.org/x/sys/unix"},
			want: []string{"broker/wire imports golang.org/x/sys/unix: broker/wire may import of other modules only []"},
		},
		{
			name: "test helper in the product", from: "broker/seglog", imports: []string{"testing", module + "/broker/vfs/faultfs"},
			want: []string{"broker/seglog imports broker/vfs/faultfs: it is for tests", "broker/seglog imports testing: it is for tests"},
		},
		{
			name: "no place", from: "broker/misc", imports: []string{"io"},
			want: []string{"broker/misc: has no place in the house: add it to hack/house/arrows.go on purpose"},
		},
		{
			name: "towards no place", from: "cmd/felix", imports: []string{module + "/hack/house"},
			want: []string{"cmd/felix imports hack/house: it has no place in the house"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := brokenArrows([]pkg{{ImportPath: module + "/" + c.from, Imports: c.imports}}, standard)
			if diff := cmp.Diff(got, c.want); diff != "" {
				t.Errorf("(-got +want)\n%s", diff)
			}
		})
	}
}

// TestLevels: the tables name folders of each other, so a folder that moves cannot leave a rule that binds
// nothing.
func TestLevels(t *testing.T) {
	exists := map[string]bool{}
	for _, p := range list(t, "./...") {
		exists[strings.TrimPrefix(p.ImportPath, module+"/")] = true
	}
	for home := range level {
		if !exists[home] {
			t.Errorf("level names %s, which is no package", home)
		}
	}
	for home, targets := range only {
		for _, name := range append([]string{home}, targets...) {
			if _, ok := level[name]; !ok {
				t.Errorf("only[%s] names %s, which has no level", home, name)
			}
		}
	}
	for home := range outside {
		if _, ok := level[home]; !ok {
			t.Errorf("outside names %s, which has no level", home)
		}
	}
}
