package client

import (
	"context"
	"fmt"

	"felix.dev/felix/broker/wire"
)

// maxHops bounds how often one request follows not_leader.
const maxHops = 3

// target is what a subscription reads.
type target struct {
	stream Stream
	shard  uint32
}

// attachment is one event stream of a subscription: a subscription that resumes has several, one after another.
type attachment struct {
	*eventStream
	conn       *conn
	id         uint64
	hasOffsets bool
	start      uint64
	live       uint64
}

// leave gives up the event stream and the place on its connection.
func (a *attachment) leave() {
	a.drop()
	a.conn.client.pool.release(a.conn)
}

// attach subscribes once, following redirects. addr is the broker to ask first, "" for any; asked is the one that was asked
// last, "" if none could be.
func (c *Client) attach(ctx context.Context, t target, start Start, addr string) (a *attachment, asked string, err error) {
	seen := map[string]bool{}
	for hops := 0; ; hops++ {
		a, asked, moved, err := c.attachAt(ctx, t, start, addr)
		if moved == nil {
			return a, asked, err
		}
		switch {
		case moved.Addr == "":
			return nil, asked, redirectError("does not say where the leader of the shard is", moved)
		case seen[moved.NodeID]:
			return nil, asked, redirectError("sends in a circle", moved)
		case hops == maxHops:
			return nil, asked, redirectError("sends on too often", moved)
		}
		seen[moved.NodeID] = true
		addr = moved.Addr
	}
}

// redirectError is retryable: the cluster is likely to be changing its leader.
func redirectError(what string, moved *wire.NotLeader) error {
	return &Error{
		Code: wire.CodeNotLeader, Retry: wire.RetryRedirect,
		Message: fmt.Sprintf("the broker %s (node %s, generation %d)", what, moved.NodeID, moved.Generation),
	}
}

// attachAt subscribes at one broker. moved is set if another one leads the shard.
func (c *Client) attachAt(ctx context.Context, t target, start Start, addr string) (_ *attachment, asked string, moved *wire.NotLeader, _ error) {
	cn, err := c.pool.get(ctx, addr, true)
	if err != nil {
		return nil, addr, nil, err
	}
	a, moved, err := cn.subscribe(ctx, t, start)
	if a == nil {
		c.pool.release(cn)
	}
	return a, cn.addr, moved, err
}

// subscribe asks for a subscription and waits for its event stream.
func (cn *conn) subscribe(ctx context.Context, t target, start Start) (*attachment, *wire.NotLeader, error) {
	if start.kind != startLatest && !cn.flags.Has(wire.FlagEventOffsets) {
		return nil, nil, &UnsupportedError{What: "offsets, so a subscription can only start at the latest record"}
	}
	m, err := cn.ask(ctx, subscribeRequest(cn.client.cfg.Tenant, t, start))
	if err != nil {
		return nil, nil, err
	}
	switch m := m.(type) {
	case *wire.Subscribed:
		a := &attachment{conn: cn, id: m.SubscriptionID}
		if m.StartOffset != nil {
			a.hasOffsets, a.start, a.live = true, *m.StartOffset, *m.StartOffset
			if m.LiveOffset != nil {
				a.live = *m.LiveOffset
			}
		}
		a.eventStream, err = cn.awaitStream(ctx, m.SubscriptionID)
		if err != nil {
			return nil, nil, err
		}
		return a, nil, nil
	case *wire.NotLeader:
		return nil, m, nil
	case *wire.SubscribeCursorError:
		return nil, nil, &CursorError{Reason: m.Reason, Requested: m.Requested, Available: m.Available}
	}
	return nil, nil, unexpected("subscribe", m)
}

// awaitStream waits for the event stream of a subscription, as long as its connection lives.
func (cn *conn) awaitStream(ctx context.Context, id uint64) (*eventStream, error) {
	ctx, cancel := cn.requestContext(ctx)
	defer cancel()
	waiting, stopWaiting := context.WithCancelCause(ctx)
	defer stopWaiting(nil)
	defer context.AfterFunc(cn.q.Context(), func() { stopWaiting(errNoAnswer) })()
	e, err := cn.events.await(waiting, id)
	if err != nil {
		return nil, cn.requestError(ctx, err)
	}
	return e, nil
}

func subscribeRequest(tenant string, t target, start Start) *wire.Subscribe {
	m := &wire.Subscribe{TenantID: tenant, Namespace: t.stream.Namespace, Stream: t.stream.Name}
	if t.shard != 0 {
		m.Shard = &t.shard
	}
	switch start.kind {
	case startLatest:
		m.Start = &wire.Start{Kind: wire.StartLatest}
	case startEarliest:
		m.Start = &wire.Start{Kind: wire.StartEarliest}
	case startAt:
		at := wire.StartAt(start.offset)
		m.Start = &at
	}
	return m
}
