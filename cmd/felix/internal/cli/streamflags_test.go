package cli

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"felix.dev/felix/broker/admin"
)

func TestStreamSpec(t *testing.T) {
	name := admin.Name{Tenant: "t", Namespace: "n", Stream: "s"}
	for _, c := range []struct {
		name string
		args []string
		want admin.StreamSpec
	}{
		{
			name: "what nobody gave is left to the broker",
			want: admin.StreamSpec{Name: name, Shards: 1, Durability: "Durable", Routing: "modulo"},
		},
		{
			name: "on several brokers", args: []string{"--durability=quorum"},
			want: admin.StreamSpec{Name: name, Shards: 1, Durability: "Quorum", Routing: "modulo"},
		},
		{
			name: "everything",
			args: []string{
				"--shards=4", "--durability=memory", "--routing=jump_hash", "--retain-bytes=1GiB", "--retain-age=24h", "--queue-entries=7",
				"--queue-bytes=1MiB", "--on-full=block", "--tail-bytes=2MiB", "--fsync=interval", "--fsync-every=2s",
			},
			want: admin.StreamSpec{
				Name: name, Shards: 4, Durability: "Memory", Routing: "jump_hash",
				Retention: admin.Retention{MaxBytes: 1 << 30, MaxAge: admin.Duration(24 * time.Hour)},
				Queue:     admin.Queue{Entries: 7, Bytes: 1 << 20, OnFull: "Block"}, TailBytes: 2 << 20,
				Fsync: admin.Fsync{Mode: "Interval", Every: admin.Duration(2 * time.Second)},
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := &cobra.Command{}
			s := newStreamFlags(cmd, true)
			if err := cmd.ParseFlags(c.args); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(s.spec(name), c.want); diff != "" {
				t.Errorf("(-got +want)\n%s", diff)
			}
		})
	}
}

func TestStreamChange(t *testing.T) {
	before := admin.StreamSpec{
		Shards: 1, Retention: admin.Retention{MaxBytes: 10, MaxAge: admin.Duration(time.Hour)},
		Queue: admin.Queue{Entries: 5, OnFull: "DropNew"}, Fsync: admin.Fsync{Mode: "Interval", Every: admin.Duration(time.Second)},
	}
	four, tail := uint32(4), int64(0)
	for _, c := range []struct {
		name string
		args []string
		want admin.StreamChange
	}{
		{name: "the same again changes nothing", args: []string{"--retain-bytes=10", "--on-full=DropNew"}},
		{
			name: "the rest of a group stays", args: []string{"--retain-bytes=0", "--on-full=CatchUp"},
			want: admin.StreamChange{
				Retention: &admin.Retention{MaxAge: admin.Duration(time.Hour)},
				Queue:     &admin.Queue{Entries: 5, OnFull: "CatchUp"},
			},
		},
		{name: "shards and tail", args: []string{"--shards=4", "--tail-bytes=0"}, want: admin.StreamChange{Shards: &four, TailBytes: &tail}},
		{name: "an interval goes with its mode", args: []string{"--fsync=Always"}, want: admin.StreamChange{Fsync: &admin.Fsync{Mode: "Always"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := &cobra.Command{}
			s := newStreamFlags(cmd, false)
			if err := cmd.ParseFlags(c.args); err != nil {
				t.Fatal(err)
			}
			if !s.changed() {
				t.Error("nothing was given")
			}
			if diff := cmp.Diff(s.change(before), c.want); diff != "" {
				t.Errorf("(-got +want)\n%s", diff)
			}
		})
	}
	if newStreamFlags(&cobra.Command{}, false).changed() {
		t.Error("something was given")
	}
}
