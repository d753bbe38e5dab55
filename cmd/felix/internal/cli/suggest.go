package cli

import (
	"fmt"
	"io"
	"path/filepath"

	"felix.dev/felix/cmd/felix/internal/settings"
	"felix.dev/felix/cmd/felix/internal/term"
)

// suggest prints commands to try next, as they work in this folder.
func (a *app) suggest(w io.Writer, style term.Style, contextFile string) {
	context := ""
	if filepath.Clean(contextFile) != settings.DevContext {
		context = " --context " + contextFile
	}
	fmt.Fprintf(w, "Try, in another terminal:\n\n")
	t := term.NewTable("  "+a.program()+" sub demo --from earliest"+context, style.Dim("read a stream"))
	for _, c := range [][2]string{
		{"echo hello | " + a.program() + " pub demo" + context, "a record a line"},
		{a.program() + " stream create orders --retain-bytes 1GiB" + context, "a stream of your own"},
		{a.program() + " stream list" + context, "what there is"},
		{a.program() + " subs --watch" + context, "who reads, and who is slow"},
		{a.program() + " demo slow-consumer", "what happens when a reader stalls"},
	} {
		t.Row("  "+c[0], style.Dim(c[1]))
	}
	fmt.Fprintf(w, "%s\n", t)
}

// program is the name that this command line was called by.
func (a *app) program() string {
	if a.env.Program == "" {
		return "felix"
	}
	return a.env.Program
}

func readDevToken(contextFile string) (string, error) {
	file, err := settings.ReadContextFile(contextFile)
	return file.Token, err
}
