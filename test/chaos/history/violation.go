package history

import (
	"fmt"
	"strings"
)

// Kind is a promise that was broken.
type Kind string

// Kinds of violations.
const (
	Lost       Kind = "lost"        // acknowledged, and not there
	Split      Kind = "split"       // two records at one offset
	Repeated   Kind = "repeated"    // one record at two offsets
	Reappeared Kind = "reappeared"  // refused, and there
	Foreign    Kind = "foreign"     // there, and never published, or by another shard's source
	Early      Kind = "early"       // there before it was published
	Reordered  Kind = "reordered"   // a source's records, or what happened one after the other
	Hole       Kind = "hole"        // a reader was not given what is there
	Backwards  Kind = "backwards"   // a reader was given an offset that is not behind the last one
	NotLinear  Kind = "not linear"  // there is no order of the operations that explains the answers
	NotChecked Kind = "not checked" // the check itself did not come to an end
)

// Violation is a promise that was broken, and by what.
type Violation struct {
	Kind  Kind
	Shard Shard
	Text  string
}

// String is one line.
func (v Violation) String() string { return fmt.Sprintf("%s: %s: %s", v.Shard, v.Kind, v.Text) }

// maxViolations bounds what is reported: one fault breaks many promises.
const maxViolations = 64

// findings collects violations.
type findings struct{ list []Violation }

func (f *findings) add(k Kind, s Shard, format string, args ...any) {
	if len(f.list) < maxViolations {
		f.list = append(f.list, Violation{k, s, fmt.Sprintf(format, args...)})
	}
}

// Report is all of them, a line each; empty if there are none.
func Report(list []Violation) string {
	lines := make([]string, len(list))
	for i, v := range list {
		lines[i] = v.String()
	}
	return strings.Join(lines, "\n")
}
