package broker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"felix.dev/felix/broker/admin"
	"felix.dev/felix/client"
)

// Streams that come, change and go while others publish to them and read them:
// every call ends, with an answer or a typed error, and a shutdown in the middle of
// it is an orderly one.
func TestChurn(t *testing.T) {
	r := run(t, t.TempDir())
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	const names = 3
	spec := func(i int) admin.StreamSpec {
		s := admin.StreamSpec{Name: named(fmt.Sprint("s", i))}
		if i%2 == 1 {
			s.Durability = "Memory"
		}
		return s
	}
	api := r.broker.Admin()
	var wg sync.WaitGroup
	for i := range names {
		wg.Go(func() {
			for n := uint32(1); ctx.Err() == nil; n++ {
				if _, _, err := api.CreateStream(ctx, spec(i), ""); err != nil && !errors.Is(err, &admin.Error{Code: admin.CodeDraining}) {
					t.Errorf("create: %v", err)
				}
				if i%2 == 0 {
					change := admin.StreamChange{Shards: new(2 + n%2), Queue: &admin.Queue{Entries: int(n)}}
					_, _ = api.UpdateStream(ctx, named(fmt.Sprint("s", i)), change)
				}
				used, stop := context.WithTimeout(ctx, 5*time.Millisecond) // for others to use it
				<-used.Done()
				stop()
				_ = api.DeleteStream(ctx, named(fmt.Sprint("s", i)))
			}
		})
	}
	for range 2 {
		c := r.client()
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				_, _ = c.Publish(ctx, streamOf(fmt.Sprint("s", i%names)), client.Message{Payload: []byte("x"), Keyed: true, Key: fmt.Append(nil, i)})
			}
		})
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				sub, err := c.Subscribe(ctx, streamOf(fmt.Sprint("s", i%names)), client.SubscribeConfig{Start: client.Earliest(), NoReconnect: true})
				if err != nil {
					continue
				}
				next, stop := context.WithTimeout(ctx, 20*time.Millisecond)
				for err == nil {
					_, err = sub.Next(next)
				}
				stop()
				_ = sub.Close()
			}
		})
	}
	half, stopHalf := context.WithTimeout(ctx, time.Second)
	defer stopHalf()
	<-half.Done()
	begin := time.Now()
	r.stop()
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("the shutdown took %s", took)
	}
	cancel()
	wg.Wait()
}
