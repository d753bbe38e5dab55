package term

import (
	"io"

	"github.com/jedib0t/go-pretty/v6/text"
)

// Style colours text for one writer. The zero value leaves text as it is.
type Style struct{ on bool }

// NewStyle makes the style for a writer: colours on a terminal, unless NO_COLOR is set or the terminal is dumb.
func NewStyle(w io.Writer, getenv func(string) string) Style {
	return Style{on: IsTerminal(w) && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"}
}

// Colours tells whether this style uses any.
func (s Style) Colours() bool { return s.on }

func (s Style) paint(c text.Color, t string) string {
	if !s.on || t == "" {
		return t
	}
	return c.EscapeSeq() + t + text.Reset.EscapeSeq()
}

// Bold is for what matters most in a line.
func (s Style) Bold(t string) string { return s.paint(text.Bold, t) }

// Dim is for what may be overlooked.
func (s Style) Dim(t string) string { return s.paint(text.FgHiBlack, t) }

// Good is for what is as it should be.
func (s Style) Good(t string) string { return s.paint(text.FgGreen, t) }

// Warn is for what somebody may want to look at.
func (s Style) Warn(t string) string { return s.paint(text.FgYellow, t) }

// Bad is for what is wrong.
func (s Style) Bad(t string) string { return s.paint(text.FgRed, t) }

// Voice is one of a few colours that tell speakers apart: 0, 1, 2 and so on.
func (s Style) Voice(i int, t string) string {
	voices := [...]text.Color{text.FgCyan, text.FgMagenta, text.FgBlue, text.FgHiYellow}
	return s.paint(voices[i%len(voices)], t)
}
