package cli

import (
	"bytes"
	"strings"
	"testing"

	"felix.dev/felix/broker/admin"
)

func TestDescribeShowsWhoHasShards(t *testing.T) {
	spec := admin.StreamSpec{Name: admin.Name{Tenant: "t", Namespace: "n", Stream: "s"}, Durability: "Quorum", Routing: "modulo"}
	for _, tc := range []struct {
		name          string
		durability    string
		shard         admin.Shard
		want, without []string
	}{
		{"alone", "Durable", admin.Shard{}, []string{"fsync"}, []string{"GROUP", "LEADER", "OWNER"}},
		{"in a group", "Quorum", admin.Shard{Group: 3, Leader: "felix-1"}, []string{"GROUP", "LEADER", "felix-1"}, []string{"OWNER", "fsync"}},
		{"nobody leads", "Quorum", admin.Shard{Group: 3}, []string{"GROUP"}, []string{"OWNER", "LEADER"}},
		{"owned", "Durable", admin.Shard{Owner: "felix-2"}, []string{"OWNER", "felix-2"}, []string{"GROUP", "LEADER", "moving"}},
		{"moving", "Memory", admin.Shard{Owner: "felix-2", Moving: "felix-0"}, []string{"felix-2, moving to felix-0"}, []string{"GROUP", "fsync"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out bytes.Buffer
			s := admin.Stream{Spec: spec, Shards: []admin.Shard{tc.shard}}
			s.Spec.Durability = tc.durability
			if err := describeStream(&out, s); err != nil {
				t.Fatal(err)
			}
			for _, part := range tc.want {
				if !strings.Contains(out.String(), part) {
					t.Errorf("%q is not in\n%s", part, out.String())
				}
			}
			for _, part := range tc.without {
				if strings.Contains(out.String(), part) {
					t.Errorf("%q is in\n%s", part, out.String())
				}
			}
		})
	}
}
