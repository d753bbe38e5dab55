package house

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

const module = "felix.dev/felix"

// level is a package's height in the house. A package may import only packages of the house that are strictly
// lower, so two on one level know nothing of each other. A folder below one that is listed belongs to it.
//
// Every package of broker/, client/ and cmd/ must be found here: a new one is placed on purpose.
var level = map[string]int{
	"broker/wire":    0,
	"broker/vfs":     0,
	"broker/udp":     0,
	"broker/bufpool": 0,

	"broker/wire/frameio":  1,
	"broker/vfs/faultfs":   1,
	"broker/metrics":       1,
	"broker/peer/pki":      1,
	"broker/peer/faultnet": 1,

	"broker/wal":     2,
	"broker/seglog":  2,
	"broker/catalog": 2,
	"broker/auth":    2,
	"broker/peer":    2,

	"broker/quorum":    3,
	"broker/stream":    3,
	"broker/placement": 3,
	"broker/egress":    4,
	"broker/cluster":   4,
	"broker/replica":   4,
	"broker/route":     4,

	"broker/server": 5,
	"broker/admin":  5,

	"broker": 6,
	"client": 6,

	"cmd/felix": 7,
}

// only narrows a package further than its level does: of the house it may import these and nothing else.
var only = map[string][]string{
	"client":              {"broker/wire", "broker/wire/frameio", "broker/udp"},
	"broker/wire/frameio": {"broker/wire"},
	"broker/vfs/faultfs":  {"broker/vfs"},
	"broker/udp":          {},
	"broker/bufpool":      {},
	"broker/metrics":      {},
	// The command line speaks to a broker through the assembly, the admin client and the Go client, like
	// anyone. It reads logs and makes keys offline.
	"cmd/felix":        {"broker", "broker/admin", "broker/auth", "broker/catalog", "broker/peer/pki", "broker/seglog", "broker/udp", "broker/vfs", "broker/wire", "client"},
	"broker/placement": {"broker/catalog"},
}

// outside lists, for packages that must stay light, the modules beyond the standard library that they may
// import; a package that is not listed may import any. Most stay free of QUIC and of Prometheus, so that they
// can be tested without a network.
var outside = map[string][]string{
	"broker/wire":          {},
	"broker/wire/frameio":  {},
	"broker/vfs":           {"golang.org/x/sys"},
	"broker/vfs/faultfs":   {},
	"broker/seglog":        {"golang.org/x/sync", "golang.org/x/sys"},
	"broker/catalog":       {"golang.org/x/sync", "sigs.k8s.io/yaml"},
	"broker/peer":          {"golang.org/x/sync", "golang.org/x/sys"},
	"broker/peer/pki":      {},
	"broker/peer/faultnet": {},
	"broker/auth":          {"github.com/golang-jwt/jwt/v5", "golang.org/x/sync"},
	"broker/stream":        {"github.com/cespare/xxhash/v2", "golang.org/x/sync", "golang.org/x/sys", "golang.org/x/time"},
	"broker/placement":     {},
	"broker/quorum":        {"github.com/hashicorp/go-hclog", "github.com/hashicorp/raft", "github.com/hashicorp/raft-boltdb/v2", "go.etcd.io/bbolt"},
}

// testOnly must not be imported by anything but tests and cmd/felix's own demonstrations of faults.
var testOnly = []string{
	"testing",
	"github.com/google/go-cmp/cmp",
	"go.uber.org/goleak",
	"pgregory.net/rapid",
	"github.com/rogpeppe/go-internal",
	module + "/broker/vfs/faultfs",
	module + "/broker/peer/faultnet",
}

// pkg is what `go list -json` says of a package, as far as the rules need it.
type pkg struct {
	ImportPath string
	Standard   bool
	Imports    []string
}

// brokenArrows lists every import of the given packages that the house forbids. standard tells the packages
// of the standard library.
func brokenArrows(packages []pkg, standard map[string]bool) []string {
	var broken []string
	for _, p := range packages {
		from, ours := strings.CutPrefix(p.ImportPath, module+"/")
		if !ours || !held(from) {
			continue
		}
		home, placed := homeOf(from)
		if !placed {
			broken = append(broken, from+": has no place in the house: add it to hack/house/arrows.go on purpose")
			continue
		}
		for _, imported := range p.Imports {
			if why := forbidden(home, imported, standard); why != "" {
				broken = append(broken, fmt.Sprintf("%s imports %s: %s", from, strings.TrimPrefix(imported, module+"/"), why))
			}
		}
	}
	slices.Sort(broken)
	return broken
}

// held tells which packages the arrows bind. Those under test/ and hack/ may import what they like.
func held(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return first == "broker" || first == "client" || first == "cmd"
}

// homeOf is the deepest listed folder that holds path. The assembly and the client are only themselves: a
// folder beside broker/server is not part of the assembly.
func homeOf(path string) (string, bool) {
	homes := slices.SortedFunc(maps.Keys(level), func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	for _, home := range homes {
		if path == home || home != "broker" && strings.HasPrefix(path, home+"/") {
			return home, true
		}
	}
	return "", false
}

// forbidden says why a package of home must not import the given one, or nothing when it may.
func forbidden(home, imported string, standard map[string]bool) string {
	for _, t := range testOnly {
		if imported == t || strings.HasPrefix(imported, t+"/") {
			return "it is for tests"
		}
	}
	target, ours := strings.CutPrefix(imported, module+"/")
	if !ours {
		allowed, narrow := outside[home]
		if standard[imported] || !narrow || slices.ContainsFunc(allowed, func(m string) bool {
			return imported == m || strings.HasPrefix(imported, m+"/")
		}) {
			return ""
		}
		return fmt.Sprintf("%s may import of other modules only %v", home, allowed)
	}
	targetHome, placed := homeOf(target)
	switch allowed, narrow := only[home]; {
	case !placed:
		return "it has no place in the house"
	case targetHome == home:
		return ""
	case level[targetHome] >= level[home]:
		return fmt.Sprintf("arrows point down, and %s is not below %s", targetHome, home)
	case narrow && !slices.Contains(allowed, targetHome):
		return fmt.Sprintf("%s may import of the house only %v", home, allowed)
	}
	return ""
}
