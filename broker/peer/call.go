package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Call sends req (as JSON) to a node and decodes the answer into resp (nil: it is
// dropped). An answer that is an error is an *Error. Without an answer the error is
// that of Dial, and the call was not carried out, or it wraps ErrUnanswered or
// ErrTooLarge. A context without a deadline gets Config.CallTimeout.
func (t *Transport) Call(ctx context.Context, node, method string, req, resp any) error {
	// A name cannot be an address, so the two kinds of keys do not meet.
	return t.call(ctx, "node "+node, method, req, resp, func(ctx context.Context) (*Conn, error) {
		return t.dialNode(ctx, node, KindCall, "")
	})
}

// CallAddr is Call for whoever is at addr.
func (t *Transport) CallAddr(ctx context.Context, addr, method string, req, resp any) error {
	return t.call(ctx, addr, method, req, resp, func(ctx context.Context) (*Conn, error) {
		return t.dial(ctx, addr, "", KindCall, "")
	})
}

func (t *Transport) call(ctx context.Context, to, method string, req, resp any, dial func(context.Context) (*Conn, error)) error {
	body, err := json.Marshal(req)
	if err != nil {
		return fmt.Errorf("peer: call %s: request: %w", method, err)
	}
	if len(body) > t.cfg.MaxCallBytes || len(method) > maxMethod {
		return fmt.Errorf("peer: call %s: %w: %d bytes", method, ErrTooLarge, len(body))
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, t.cfg.CallTimeout)
		defer cancel()
	}

	pool, err := t.calls.enter(ctx, to, t.cfg.MaxCallsPerPeer)
	if err != nil {
		return fmt.Errorf("peer: call %s to %s: %w", method, to, err)
	}
	defer t.calls.leave(pool)
	answer, err := t.exchange(ctx, pool, method, body, dial)
	if err != nil {
		return fmt.Errorf("peer: call %s to %s: %w", method, to, err)
	}
	return answer.decode(resp)
}

// exchange sends the call on a connection that idles, or on a new one.
func (t *Transport) exchange(
	ctx context.Context, pool *callPool, method string, body []byte, dial func(context.Context) (*Conn, error),
) (*result, error) {
	deadline, _ := ctx.Deadline()
	for {
		c := t.calls.take(pool)
		fresh := c == nil
		if fresh {
			conn, err := dial(ctx)
			if err != nil {
				return nil, err
			}
			if c = t.newCallConn(pool, conn); c == nil {
				return nil, errors.Join(ErrClosed, conn.Close())
			}
		}
		r := request{within: time.Until(deadline), method: method, body: body}
		answer, sent, err := c.exchange(ctx, &r)
		switch {
		case err == nil:
			t.calls.put(c, t.cfg.IdleTimeout)
			return answer, nil
		case errors.Is(err, ErrTooLarge), sent:
			t.calls.suspect(pool)
			return nil, fmt.Errorf("%w: %w", ErrUnanswered, err)
		case ctx.Err() != nil || fresh:
			return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
		}
		// The connection had died while it idled, and nothing was sent: another one.
	}
}
