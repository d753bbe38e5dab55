package house

import (
	"fmt"
	"slices"
	"strings"
)

// Lines that a file may have. A source file beyond worthALook needs a reason in review.
const (
	worthALook   = 600
	sourceLimit  = 1000
	testLimit    = 1500
	generatedTag = "// Code generated "
)

// file is a Go file of the repository.
type file struct {
	path      string
	lines     int
	generated bool
}

// tooLong sorts the files that nobody should have to read into those that fail and those that are only listed.
func tooLong(files []file) (failed, listed []string) {
	for _, f := range files {
		limit := sourceLimit
		if strings.HasSuffix(f.path, "_test.go") {
			limit = testLimit
		}
		switch {
		case f.generated:
		case f.lines > limit:
			failed = append(failed, fmt.Sprintf("%s has %d lines, the limit is %d", f.path, f.lines, limit))
		case f.lines > worthALook && limit == sourceLimit:
			listed = append(listed, fmt.Sprintf("%s has %d lines", f.path, f.lines))
		}
	}
	slices.Sort(failed)
	slices.Sort(listed)
	return failed, listed
}
