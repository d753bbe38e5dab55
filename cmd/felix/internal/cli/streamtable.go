package cli

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"time"

	"felix.dev/felix/broker/admin"
	"felix.dev/felix/broker/catalog"
	"felix.dev/felix/cmd/felix/internal/term"
)

func streamTable(streams []admin.Stream) *term.Table {
	t := term.NewTable("STREAM", "DURABILITY", ">SHARDS", ">RECORDS", ">SIZE", ">READERS", "ON-FULL", "AGE", "?PROBLEM")
	for _, s := range streams {
		var records, bytes uint64
		readers, problem := 0, ""
		for _, sh := range s.Shards {
			records += sh.NextOffset - min(sh.OldestOffset, sh.NextOffset)
			if s.Spec.Durability == string(catalog.Memory) {
				bytes += uint64(max(sh.TailBytes, 0))
			} else {
				bytes += uint64(max(sh.LogBytes, 0))
			}
			readers += sh.Subscriptions
			if problem == "" && sh.Error != "" {
				problem = fmt.Sprintf("shard %d: %s", sh.Shard, sh.Error)
			}
		}
		t.Row(showStream(s.Spec.Namespace, s.Spec.Stream), s.Spec.Durability, len(s.Shards), records, term.Bytes(bytes), readers,
			cmp.Or(s.Spec.Queue.OnFull, "default"), age(s.CreatedAt), problem)
	}
	return t
}

// describeStream prints everything there is to say about a stream.
func describeStream(w io.Writer, s admin.Stream) error {
	about := term.NewTable("STREAM", s.Spec.String())
	about.Row("durability", s.Spec.Durability)
	about.Row("routing", s.Spec.Routing)
	about.Row("retention", retention(s.Spec.Retention))
	about.Row("reader's queue", queue(s.Spec.Queue))
	about.Row("tail in memory", sizeOrDefault(s.Spec.TailBytes))
	if s.Spec.Durability == string(catalog.Durable) {
		about.Row("fsync", fsync(s.Spec.Fsync))
	}
	about.Row("created", fmt.Sprintf("%s (%s ago)", s.CreatedAt.Format(time.RFC3339), age(s.CreatedAt)))
	about.Row("incarnation", s.Incarnation)
	if err := about.Write(w); err != nil {
		return err
	}
	shards := term.NewTable(">SHARD", "?GROUP", "?LEADER", "?OWNER", ">OLDEST", ">NEXT", ">RECORDS", ">LOG", ">TAIL", ">READERS", "?PROBLEM")
	for _, sh := range s.Shards {
		shards.Row(sh.Shard, groupOf(&sh), sh.Leader, ownerOf(&sh), sh.OldestOffset, sh.NextOffset, sh.NextOffset-min(sh.OldestOffset, sh.NextOffset),
			term.Bytes(uint64(max(sh.LogBytes, 0))), term.Bytes(uint64(max(sh.TailBytes, 0))), sh.Subscriptions, problemOf(&sh))
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	return shards.Write(w)
}

// groupOf is the quorum group that carries a shard, if one does.
func groupOf(s *admin.Shard) string {
	if s.Group == 0 {
		return ""
	}
	return strconv.FormatUint(uint64(s.Group), 10)
}

// ownerOf is the only broker that has a shard, and where the shard is going.
func ownerOf(s *admin.Shard) string {
	if s.Moving == "" {
		return s.Owner
	}
	return fmt.Sprintf("%s, moving to %s", s.Owner, s.Moving)
}

// problemOf is what is wrong with a shard, what to do, and what the broker met.
func problemOf(s *admin.Shard) string {
	if s.Detail == "" {
		return s.Error
	}
	return fmt.Sprintf("%s (%s)", s.Error, s.Detail)
}

const brokersDefault = "the broker's default"

func retention(r admin.Retention) string {
	bytes, age := "any size", "any age"
	if r.MaxBytes > 0 {
		bytes = "up to " + term.Bytes(uint64(r.MaxBytes))
	}
	if r.MaxAge > 0 {
		age = "up to " + time.Duration(r.MaxAge).String()
	}
	return bytes + ", " + age
}

func queue(q admin.Queue) string {
	entries, bytes, onFull := "default batches", "default bytes", "default"
	if q.Entries > 0 {
		entries = fmt.Sprintf("%d batches", q.Entries)
	}
	if q.Bytes > 0 {
		bytes = term.Bytes(uint64(q.Bytes))
	}
	if q.OnFull != "" {
		onFull = q.OnFull
	}
	return fmt.Sprintf("%s, %s; when full: %s", entries, bytes, onFull)
}

func fsync(f admin.Fsync) string {
	switch {
	case f.Mode == "":
		return brokersDefault
	case f.Every > 0:
		return fmt.Sprintf("%s, every %s", f.Mode, time.Duration(f.Every))
	}
	return f.Mode
}

func sizeOrDefault(n int64) string {
	if n <= 0 {
		return brokersDefault
	}
	return term.Bytes(uint64(n))
}

// age is how long ago something was, roughly.
func age(since time.Time) string {
	if since.IsZero() {
		return "-"
	}
	return term.Duration(max(time.Since(since), 0).Truncate(time.Second))
}
