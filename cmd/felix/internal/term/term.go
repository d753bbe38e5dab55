package term

import (
	"os"

	"golang.org/x/term"
)

// IsTerminal tells whether a reader or writer is a terminal.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Width is how many columns the terminal behind a writer has, or 0 if it is none.
func Width(stream any) int {
	f, ok := stream.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}
