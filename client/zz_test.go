package client_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"felix.dev/felix/client"
)

func TestZZFan(t *testing.T) {
	d := startReal(t, t.TempDir(), "127.0.0.1:0")
	c := dialReal(t, d.config())
	ctx := realContext(t)
	for _, tc := range []struct{ subs, size, n int }{{10, 256, 150000}, {100, 256, 30000}, {10, 4096, 20000}} {
		s := d.create(t, fmt.Sprintf("s%d-%d", tc.subs, tc.size), 1, "Memory")
		var wg sync.WaitGroup
		began := time.Now()
		for range tc.subs {
			sub, err := c.Subscribe(ctx, s, client.SubscribeConfig{})
			if err != nil {
				t.Fatal(err)
			}
			wg.Go(func() {
				calls := 0
				for got := 0; got < tc.n; {
					ev, err := sub.NextBatch(ctx)
					if err != nil {
						t.Error(err)
						return
					}
					calls++
					got += len(ev)
				}
				sub.Close()
			})
		}
		p, _ := c.NewPublisher(s, client.PublisherConfig{})
		pl := make([]byte, tc.size)
		for range tc.n {
			p.Publish(ctx, client.Message{Payload: pl})
		}
		if err := p.Close(ctx); err != nil {
			t.Error(err)
		}
		wg.Wait()
		el := time.Since(began).Seconds()
		fmt.Printf("%+v: %.0f deliveries/s\n", tc, float64(tc.subs*tc.n)/el)
	}
}
