package wal

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRecords(t *testing.T) {
	e := entry(6, 3, 17)
	for _, c := range []struct {
		name string
		b    []byte
		want record
	}{
		{"declare", appendDeclare(nil, spaceEntries, 7, "raft/1"), record{kind: kindDeclare, typ: spaceEntries, id: 7, data: []byte("raft/1")}},
		{"journal", appendJournal(nil, 7, 5, 9, []byte("data")), record{kind: kindJournal, id: 7, a: 5, b: 9, data: []byte("data")}},
		{"release", appendBound(nil, kindRelease, 7, 9), record{kind: kindRelease, id: 7, a: 9}},
		{"forget", appendPrefix(nil, kindForget, 0, 7), record{kind: kindForget, id: 7}},
		{"discard", appendPrefix(nil, kindDiscard, 0, 7), record{kind: kindDiscard, id: 7}},
		{"truncate from", appendBound(nil, kindTruncateFrom, 7, 9), record{kind: kindTruncateFrom, id: 7, a: 9}},
		{"truncate to", appendBound(nil, kindTruncateTo, 7, 9), record{kind: kindTruncateTo, id: 7, a: 9}},
		{"entry", appendEntry(nil, 7, &e), record{kind: kindEntry, typ: e.Type, id: 7, a: 6, b: 3, time: e.AppendedAt.UnixNano(), data: e.Data, ext: e.Ext}},
	} {
		c.want.size = len(c.b)
		for n := range len(c.b) {
			var r record
			if err := parseRecord(c.b[:n], &r); err == nil {
				t.Errorf("%s: %d of %d bytes are a record", c.name, n, len(c.b))
			}
		}
		var got record
		do(t, parseRecord(append(c.b, 1, 2, 3), &got))
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(record{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// Whatever the bytes are, parsing them neither panics nor takes more than there is.
func FuzzRecord(f *testing.F) {
	e := entry(6, 3, 17)
	f.Add(appendEntry(nil, 7, &e))
	f.Add(appendJournal(nil, 7, 5, 9, []byte("data")))
	f.Add(appendDeclare(nil, spaceJournal, 7, "key"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var r record
		if err := parseRecord(b, &r); err != nil {
			return
		}
		if r.size <= 0 || r.size > len(b) {
			t.Fatalf("a record of %d bytes in %d", r.size, len(b))
		}
		if r.kind == kindEntry {
			e := r.entry()
			if got := appendEntry(nil, r.id, &e); r.time != 0 && !bytes.Equal(got[entryHeaderLen:], b[entryHeaderLen:r.size]) {
				t.Fatal("an entry changes when it is written again")
			}
		}
	})
}
