package admin

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"felix.dev/felix/broker/catalog"
)

func TestSpecOfAQuorumStream(t *testing.T) {
	want := catalog.StreamSpec{
		Name: catalog.Name{Tenant: "t", Namespace: "n", Stream: "s"}, Shards: 2, Durability: catalog.Quorum,
		Queue: catalog.Queue{OnFull: catalog.CatchUp},
	}
	got, err := SpecOf(want).CatalogSpec()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSetPlace(t *testing.T) {
	for _, tc := range []struct {
		place catalog.ShardPlace
		want  Shard
	}{
		{catalog.ShardPlace{Group: 3}, Shard{Shard: 1, Group: 3}},
		{catalog.ShardPlace{Owner: "n1", Instance: "i1", Epoch: 2, Moving: "n2"}, Shard{Shard: 1, Owner: "n1", Moving: "n2"}},
		{catalog.ShardPlace{}, Shard{Shard: 1}},
	} {
		got := Shard{Shard: 1}
		got.SetPlace(tc.place)
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", tc.place, diff)
		}
	}
}
