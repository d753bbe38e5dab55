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
