package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

// TestHelpFits holds every help text to 80 columns, but for examples, which are to be copied, and words that are too
// long.
func TestHelpFits(t *testing.T) {
	root := newRoot(Env{Stdout: &bytes.Buffer{}})
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		var out bytes.Buffer
		cmd.SetOut(&out)
		if err := cmd.Help(); err != nil {
			t.Fatal(err)
		}
		text := out.String()
		if cmd.Example != "" {
			text = strings.Replace(text, cmd.Example, "", 1)
		}
		for line := range strings.Lines(text) {
			if line = strings.TrimRight(line, "\n"); len(line) > helpWidth {
				t.Errorf("%s: %d columns: %s", cmd.CommandPath(), len(line), line)
			}
		}
		for _, c := range cmd.Commands() {
			if c.Name() != "completion" && c.IsAvailableCommand() { // that one's texts are the library's
				visit(c)
			}
		}
	}
	visit(root)
}

func TestReflow(t *testing.T) {
	got := reflow("One two\nthree four.\n\n  a   one two three\n  bc  four five six seven\nand so on\n", 18)
	want := `One two three
four.

  a   one two
      three
  bc  four five
      six seven
      and so on
`
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}
