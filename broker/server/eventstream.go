package server

import (
	"context"
	"time"

	"github.com/quic-go/quic-go"

	"felix.dev/felix/broker/egress"
)

// lastWords is how long a reset waits at most for what was written before it.
const lastWords = 250 * time.Millisecond

// eventStream is the stream of a subscription. A reset throws away what QUIC was
// given and has not delivered: its hello, without which a client does not even know
// which subscription is lost, and the last records before the end. So a stream that
// is not stuck is reset only after that had time to go out.
type eventStream struct {
	*quic.SendStream
	conn *connection
	// stuck is set by a write that failed: what is left cannot go out.
	stuck bool
}

// Write implements egress.Writer.
func (e *eventStream) Write(b []byte) (int, error) {
	n, err := e.SendStream.Write(b)
	e.stuck = err != nil
	return n, err
}

// CancelWrite implements egress.Writer.
func (e *eventStream) CancelWrite(code quic.StreamErrorCode) {
	if code == egress.ResetLost && !e.stuck {
		ctx, cancel := context.WithTimeout(e.Context(), lastWords)
		e.conn.quiet(ctx)
		cancel()
	}
	e.SendStream.CancelWrite(code)
}
