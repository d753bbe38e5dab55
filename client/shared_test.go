package client

import (
	"fmt"
	"sync"
	"testing"

	"felix.dev/felix/client/internal/fakebroker"
)

func TestSharedPublishersAreBounded(t *testing.T) {
	b := startBroker(t, fakebroker.Config{})
	c := dial(t, configFor(b))
	var publishing sync.WaitGroup
	ctx := testContext(t)
	for worker := range 4 {
		publishing.Go(func() {
			for i := range maxShared {
				s := Stream{Namespace: "default", Name: fmt.Sprintf("s%d", (i+worker*20)%(maxShared+20))}
				if _, err := c.Publish(ctx, s, Message{Payload: []byte("x")}); err != nil {
					t.Errorf("publish to %v: %v", s, err)
				}
			}
		})
	}
	publishing.Wait()
	c.shared.mu.Lock()
	n := len(c.shared.byName)
	c.shared.mu.Unlock()
	if n > maxShared {
		t.Errorf("%d publishers are kept, want at most %d", n, maxShared)
	}
	until(t, "the others to be closed", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.publishers) <= maxShared
	})
}
