package term

import (
	"io"
	"slices"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// Table is rows of text under a header, in columns without lines around them.
type Table struct {
	header table.Row
	rows   []table.Row
	config []table.ColumnConfig
	rare   []int // columns that are left out when they are empty
	width  int
}

// NewTable makes a table with the given column names. A name that begins with ">" is aligned to the right, as
// numbers are; one that begins with "?" is left out if no row has anything in it.
func NewTable(columns ...string) *Table {
	t := &Table{}
	for i, c := range columns {
		switch c[0] {
		case '>':
			c = c[1:]
			t.config = append(t.config, table.ColumnConfig{Number: i + 1, Align: text.AlignRight, AlignHeader: text.AlignRight})
		case '?':
			c = c[1:]
			t.rare = append(t.rare, i)
		}
		t.header = append(t.header, c)
	}
	return t
}

// empty tells whether no row has anything in a column.
func (t *Table) empty(column int) bool {
	return !slices.ContainsFunc(t.rows, func(r table.Row) bool { return column < len(r) && r[column] != "" })
}

// Row adds a row.
func (t *Table) Row(cells ...any) { t.rows = append(t.rows, cells) }

// Len is the number of rows.
func (t *Table) Len() int { return len(t.rows) }

// Fit cuts rows to a width; 0 leaves them as they are.
func (t *Table) Fit(width int) *Table {
	t.width = width
	return t
}

// FitTo cuts rows to the width of the terminal behind w, if there is one.
func (t *Table) FitTo(w io.Writer) *Table { return t.Fit(Width(w)) }

// String draws the table, with a line break after the last row.
func (t *Table) String() string {
	w := table.NewWriter()
	w.SetStyle(table.Style{
		Name:    "felix",
		Box:     table.BoxStyle{PaddingRight: "   ", UnfinishedRow: "…"},
		Format:  table.FormatOptions{Header: text.FormatDefault},
		Options: table.OptionsNoBordersAndSeparators,
		Size:    table.SizeOptions{WidthMax: t.width},
	})
	config := slices.Clone(t.config)
	for _, column := range t.rare {
		if t.empty(column) {
			config = append(config, table.ColumnConfig{Number: column + 1, Hidden: true})
		}
	}
	w.SetColumnConfigs(config)
	w.SuppressTrailingSpaces()
	w.AppendHeader(t.header)
	w.AppendRows(t.rows)
	return w.Render() + "\n"
}

// Write draws the table on w.
func (t *Table) Write(w io.Writer) error {
	_, err := io.WriteString(w, t.String())
	return err
}
