package broker

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"felix.dev/felix/broker/admin"
	"felix.dev/felix/client"
)

// Whichever broker of a cluster is asked, it says how a stream stands, also if others serve it; and if they do not
// answer, that nothing is known, instead of nothing being there.
func TestEveryBrokerShowsTheSameStream(t *testing.T) {
	c := newTestCluster(t)
	a := c.add("a").start()
	b := c.add("b").start()
	ctx, cancel := context.WithTimeout(t.Context(), testWait)
	defer cancel()
	p := a.client()
	for _, durability := range []string{"Durable", "Memory", "Quorum"} {
		name := "s-" + strings.ToLower(durability)
		if _, _, err := a.broker.Admin().CreateStream(ctx, admin.StreamSpec{Name: named(name), Durability: durability, Shards: 2}, ""); err != nil {
			t.Fatal(err)
		}
		for i := range 10 {
			if _, err := p.Publish(ctx, streamOf(name), client.Message{Key: fmt.Append(nil, i), Payload: []byte("x")}); err != nil {
				t.Fatal(err)
			}
		}
		for _, at := range []*memberBroker{a, b} {
			eventually(t, at.node+" shows "+name, func() bool {
				st, err := at.broker.Admin().Stream(ctx, named(name))
				if err != nil {
					return false
				}
				records := uint64(0)
				for _, k := range st.Shards {
					records += k.NextOffset - k.OldestOffset
					if k.Error != "" {
						t.Logf("%s: %s (%s)", at.node, k.Error, k.Detail)
					}
				}
				return records == 10
			})
		}
	}
	before, err := a.broker.Admin().Stream(ctx, named("s-memory"))
	if err != nil {
		t.Fatal(err)
	}
	b.stop()
	after, err := a.broker.Admin().Stream(ctx, named("s-memory"))
	if err != nil {
		t.Fatal(err)
	}
	for i, k := range after.Shards {
		if known := k.Error == ""; known != (before.Shards[i].Owner == "a") {
			t.Errorf("shard %d of broker %s: %q", i, before.Shards[i].Owner, k.Error)
		}
	}
}
