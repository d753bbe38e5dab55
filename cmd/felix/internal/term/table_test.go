package term

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTable(t *testing.T) {
	table := NewTable("NAME", ">RECORDS", "STATE")
	table.Row("orders", 12, "live")
	table.Row("a-longer-name", 123456, "")
	want := "" +
		"NAME            RECORDS   STATE\n" +
		"orders               12   live\n" +
		"a-longer-name    123456\n"
	if diff := cmp.Diff(table.String(), want); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
	if table.Len() != 2 {
		t.Errorf("got %d rows", table.Len())
	}
}

// A column for what is rarely there takes no room when it is not.
func TestRareColumn(t *testing.T) {
	for problem, want := range map[string]string{
		"":     "NAME     SIZE\norders      1\n",
		"torn": "NAME     PROBLEM   SIZE\norders   torn         1\n",
	} {
		table := NewTable("NAME", "?PROBLEM", ">SIZE")
		table.Row("orders", problem, 1)
		if diff := cmp.Diff(want, table.String()); diff != "" {
			t.Errorf("%q (-want +got)\n%s", problem, diff)
		}
	}
}
