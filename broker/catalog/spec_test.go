package catalog

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestNameValidate(t *testing.T) {
	for _, good := range []string{"a", "A", "0", "_", "orders", "orders.v2", "a-b_c.d", "_x", strings.Repeat("x", 128)} {
		if err := (Name{good, good, good}).Validate(); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{"", ".", "..", ".a", "-a", "a/b", "a:b", "a*", "*", "a b", "ä", "a\n", "a\x00", strings.Repeat("x", 129)} {
		if err := (Name{bad, "a", "a"}).Validate(); err == nil {
			t.Errorf("%q accepted", bad)
		}
	}
	err := (Name{"*", "/", ":"}).Validate()
	for _, part := range []string{"tenant", "namespace", "stream"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s is not in %v", part, err)
		}
	}
}

func TestSpecValidate(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*StreamSpec)
		want   string // part of the error; empty: accepted
	}{
		{"defaults", func(*StreamSpec) {}, ""},
		{"no namespace is the default one", func(s *StreamSpec) { s.Name.Namespace = "" }, ""},
		{"bad name", func(s *StreamSpec) { s.Name.Stream = "a/b" }, "stream"},
		{"most shards", func(s *StreamSpec) { s.Shards = 256 }, ""},
		{"too many shards", func(s *StreamSpec) { s.Shards = 257 }, "shards"},
		{"memory", func(s *StreamSpec) { s.Durability = Memory }, ""},
		{"quorum", func(s *StreamSpec) { s.Durability = Quorum }, ""},
		{"fsync of quorum", func(s *StreamSpec) { s.Durability, s.Fsync.Mode = Quorum, FsyncAlways }, "fsync"},
		{"unknown durability", func(s *StreamSpec) { s.Durability = "Postgres" }, "durability"},
		{"jump", func(s *StreamSpec) { s.Routing = 1 }, ""},
		{"unknown routing", func(s *StreamSpec) { s.Routing = 9 }, "routing"},
		{"age", func(s *StreamSpec) { s.Retention.MaxAge = time.Second }, ""},
		{"short age", func(s *StreamSpec) { s.Retention.MaxAge = time.Millisecond }, "retention"},
		{"negative age", func(s *StreamSpec) { s.Retention.MaxAge = -time.Hour }, "retention"},
		{"negative bytes", func(s *StreamSpec) { s.Retention.MaxBytes = -1 }, "retention"},
		{"queue", func(s *StreamSpec) { s.Queue = Queue{1 << 20, 1, Block} }, ""},
		{"queue too long", func(s *StreamSpec) { s.Queue.Entries = 1<<20 + 1 }, "queue"},
		{"negative queue", func(s *StreamSpec) { s.Queue.Entries = -1 }, "queue"},
		{"negative queue bytes", func(s *StreamSpec) { s.Queue.Bytes = -1 }, "queue"},
		{"unknown policy", func(s *StreamSpec) { s.Queue.OnFull = "Explode" }, "onFull"},
		{"catch up from memory", func(s *StreamSpec) { s.Durability, s.Queue.OnFull = Memory, CatchUp }, "onFull"},
		{"small tail", func(s *StreamSpec) { s.TailBytes = 1 }, "tail"},
		{"large tail", func(s *StreamSpec) { s.TailBytes = MaxTailBytes + 1 }, "tail"},
		{"interval", func(s *StreamSpec) { s.Fsync = Fsync{FsyncInterval, time.Second} }, ""},
		{"unknown fsync", func(s *StreamSpec) { s.Fsync.Mode = "Never" }, "fsync"},
		{"interval of always", func(s *StreamSpec) { s.Fsync = Fsync{FsyncAlways, time.Second} }, "fsync"},
		{"negative interval", func(s *StreamSpec) { s.Fsync = Fsync{FsyncInterval, -1} }, "fsync"},
		{"fsync of memory", func(s *StreamSpec) { s.Durability, s.Fsync.Mode = Memory, FsyncAlways }, "fsync"},
		{"age of memory without bytes", func(s *StreamSpec) { s.Durability, s.Retention.MaxAge = Memory, time.Hour }, "bytes"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := spec("s")
			tc.change(&s)
			err := s.Validate()
			if tc.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			var invalid *InvalidError
			if !errors.As(err, &invalid) || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v, want %q in it", err, tc.want)
			}
		})
	}
}

func TestSpecValidateReportsEverything(t *testing.T) {
	err := StreamSpec{Shards: 999, Durability: "x", TailBytes: 1}.Validate()
	for _, part := range []string{"tenant", "shards", "durability", "tail"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s is not in %v", part, err)
		}
	}
}
