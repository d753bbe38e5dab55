package catalog

import (
	"errors"
	"fmt"
	"regexp"
)

// maxPart is the longest tenant, namespace or stream name.
const maxPart = 128

var partPattern = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)

// Name is what a stream is called. Its parts hold none of '/', ':' and '*', so
// that the joined form is unique and can stand in permissions and in paths.
type Name struct {
	Tenant    string `json:"tenant"`
	Namespace string `json:"namespace"`
	Stream    string `json:"stream"`
}

// String is "tenant/namespace/stream".
func (n Name) String() string { return n.Tenant + "/" + n.Namespace + "/" + n.Stream }

// Validate reports every part that is not allowed.
func (n Name) Validate() error {
	return errors.Join(checkPart("tenant", n.Tenant), checkPart("namespace", n.Namespace), checkPart("stream", n.Stream))
}

func checkPart(what, s string) error {
	if !partPattern.MatchString(s) {
		return fmt.Errorf("%s %q: want 1 to %d of A-Z a-z 0-9 . _ -, not beginning with . or -", what, s, maxPart)
	}
	return nil
}
