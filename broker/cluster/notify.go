package cluster

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// notifier tells any number of waiters that something has changed.
type notifier struct {
	mu sync.Mutex
	ch chan struct{}
}

func newNotifier() *notifier { return &notifier{ch: make(chan struct{})} }

// changed is closed at the next change. Who takes it before he looks misses none.
func (n *notifier) changed() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ch
}

func (n *notifier) notify() {
	n.mu.Lock()
	defer n.mu.Unlock()
	close(n.ch)
	n.ch = make(chan struct{})
}

// kick wakes one goroutine, now or when it looks next.
type kick chan struct{}

func newKick() kick { return make(kick, 1) }

func (k kick) now() {
	select {
	case k <- struct{}{}:
	default: // it will look anyway
	}
}

// settleAfter is how long a loop waits after a change before it looks: changes come
// in crowds.
const settleAfter = 30 * time.Millisecond

// rest waits for a crowd of changes to pass; false: ctx is over.
func rest(ctx context.Context) bool {
	t := time.NewTimer(settleAfter)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// jittered is a time of about d, so that brokers that started together do not go
// on together.
func jittered(d time.Duration) time.Duration {
	return d*3/4 + rand.N(max(d/2, 1)) //nolint:gosec // nothing secret depends on when somebody looks
}
