package term

import (
	"bytes"
	"testing"
)

func TestStyle(t *testing.T) {
	plain := NewStyle(&bytes.Buffer{}, func(string) string { return "" })
	if got := plain.Good("ok") + plain.Voice(7, "x"); plain.Colours() || got != "okx" {
		t.Errorf("a buffer got escape sequences: %q", got)
	}
	coloured := Style{on: true}
	if got, want := coloured.Bad("no"), "\x1b[31mno\x1b[0m"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := coloured.Bad(""); got != "" {
		t.Errorf("nothing was painted: %q", got)
	}
}
