package client

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"felix.dev/felix/client/internal/fakebroker"
)

func TestPublishAndSubscribe(t *testing.T) {
	b := startBroker(t, fakebroker.Config{})
	c := dial(t, configFor(b))
	ctx := testContext(t)
	for i := range 3 {
		r, err := c.Publish(ctx, demo, Message{Payload: fmt.Appendf(nil, "r%d", i)})
		if err != nil {
			t.Fatalf("publish %d: %v", i, err)
		}
		if want := (Receipt{Offset: uint64(i), HasOffset: true}); r != want {
			t.Errorf("receipt %d: got %+v, want %+v", i, r, want)
		}
	}
	sub := subscribe(t, c, demo, SubscribeConfig{Start: Earliest()})
	if diff := cmp.Diff(listed(0, 3), next(t, sub, 3)); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
	if got := [3]uint64{sub.StartOffset(), sub.LiveOffset(), sub.Position()}; got != [3]uint64{0, 3, 3} {
		t.Errorf("start, live, position: got %v, want [0 3 3]", got)
	}
	if _, err := c.Publish(ctx, demo, Message{Payload: []byte("r3")}); err != nil {
		t.Fatalf("publish: %v", err)
	}
	if diff := cmp.Diff(listed(3, 4), next(t, sub, 1)); diff != "" {
		t.Errorf("live (-want +got):\n%s", diff)
	}
}

func TestClosedClient(t *testing.T) {
	b := startBroker(t, fakebroker.Config{})
	c, err := Dial(testContext(t), configFor(b))
	if err != nil {
		t.Fatal(err)
	}
	sub, err := c.Subscribe(testContext(t), demo, SubscribeConfig{})
	if err != nil {
		t.Fatal(err)
	}
	waiting := make(chan error, 1)
	go func() {
		_, err := sub.Next(context.Background())
		waiting <- err
	}()
	if err := c.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	is(t, <-waiting, ErrClosed)
	ctx := testContext(t)
	_, err = c.Publish(ctx, demo, Message{})
	is(t, err, ErrClosed)
	_, err = c.Subscribe(ctx, demo, SubscribeConfig{})
	is(t, err, ErrClosed)
	_, err = c.NewPublisher(demo, PublisherConfig{})
	is(t, err, ErrClosed)
	_, err = c.Shards(ctx, demo)
	is(t, err, ErrClosed)
	_, err = sub.Next(ctx)
	is(t, err, ErrClosed)
	if err := c.Close(); err != nil {
		t.Errorf("close again: %v", err)
	}
}
