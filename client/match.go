package client

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
)

// receiver is what is used of a QUIC stream that events come on.
type receiver interface {
	io.Reader
	CancelRead(quic.StreamErrorCode)
	SetReadDeadline(time.Time) error
}

// eventStream is an event stream whose hello has been read.
type eventStream struct {
	stream receiver
	frames *frameBuf
}

// drop tells the broker that nobody reads this stream: that is the unsubscribe.
func (e *eventStream) drop() { e.stream.CancelRead(0) }

// matcher brings event streams and subscribe requests of one connection together by subscription id. The stream and
// the answer that names its id come in either order.
type matcher struct {
	mu sync.Mutex
	// meetings is guarded by mu. An entry lives until both sides have come or one has given up.
	meetings map[uint64]*meeting
}

// meeting is where one stream and one request find each other.
type meeting struct {
	stream chan *eventStream // cap 1
	taken  chan struct{}     // closed when the request has the stream, or does not want it any more
	// gone is guarded by matcher.mu: the request has given up, so the stream is dropped when it comes.
	gone bool
}

func newMatcher() *matcher { return &matcher{meetings: map[uint64]*meeting{}} }

func (m *matcher) meet(id uint64) *meeting {
	t := m.meetings[id]
	if t == nil {
		t = &meeting{stream: make(chan *eventStream, 1), taken: make(chan struct{})}
		m.meetings[id] = t
	}
	return t
}

// offer brings a stream, and waits until it is wanted. It returns false if it is not, within the context's time; the
// caller then drops it.
func (m *matcher) offer(ctx context.Context, id uint64, e *eventStream) bool {
	m.mu.Lock()
	t := m.meet(id)
	if t.gone {
		delete(m.meetings, id)
		m.mu.Unlock()
		return false
	}
	select {
	case t.stream <- e:
	default: // a second stream for the same subscription
		m.mu.Unlock()
		return false
	}
	m.mu.Unlock()
	select {
	case <-t.taken:
		return true
	case <-ctx.Done():
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-t.stream:
		delete(m.meetings, id)
		return false
	default: // taken after all
		return true
	}
}

// await waits for the stream of a subscription.
func (m *matcher) await(ctx context.Context, id uint64) (*eventStream, error) {
	m.mu.Lock()
	t := m.meet(id)
	m.mu.Unlock()
	var e *eventStream
	select {
	case e = <-t.stream:
	case <-ctx.Done():
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if e == nil {
		select {
		case e = <-t.stream: // it came at the same moment
		default:
			t.gone = true
			return nil, context.Cause(ctx)
		}
	}
	close(t.taken)
	delete(m.meetings, id)
	return e, nil
}
