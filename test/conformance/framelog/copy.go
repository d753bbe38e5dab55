package main

import (
	"context"
	"errors"
	"io"

	"github.com/quic-go/quic-go"
)

// direction of a frame.
type direction string

const (
	toBroker direction = ">"
	toClient direction = "<"
)

type source interface {
	io.Reader
	CancelRead(quic.StreamErrorCode)
}

type sink interface {
	io.WriteCloser
	CancelWrite(quic.StreamErrorCode)
	Context() context.Context
}

func (c *connection) acceptBidi(ctx context.Context) {
	for {
		down, err := c.down.AcceptStream(ctx)
		if err != nil {
			return
		}
		up, err := c.up.OpenStreamSync(ctx)
		if err != nil {
			return
		}
		c.streams.Lock()
		c.streams.bidi++
		c.streams.Unlock()
		name := streamName("b", down.StreamID())
		c.copies.Go(func() { c.copy(name, toBroker, down, up) })
		c.copies.Go(func() { c.copy(name, toClient, up, down) })
	}
}

func (c *connection) acceptUni(ctx context.Context, from, to *quic.Conn, dir direction) {
	for {
		in, err := from.AcceptUniStream(ctx)
		if err != nil {
			return
		}
		out, err := to.OpenUniStreamSync(ctx)
		if err != nil {
			return
		}
		c.streams.Lock()
		if dir == toClient {
			c.streams.events++
		} else {
			c.streams.uni++
		}
		c.streams.Unlock()
		name := streamName("u", in.StreamID())
		c.copies.Go(func() { c.copy(name, dir, in, out) })
	}
}

// copy passes bytes and the way a stream ends: FIN, reset, or a reader that stopped.
func (c *connection) copy(name string, dir direction, in source, out sink) {
	stop := context.AfterFunc(out.Context(), func() {
		var stopped *quic.StreamError
		if errors.As(context.Cause(out.Context()), &stopped) && stopped.Remote {
			c.print.line("c%d %s %s stopped by the reader, code %d", c.id, name, dir, stopped.ErrorCode)
			in.CancelRead(stopped.ErrorCode)
		}
	})
	defer stop()
	frames := &frameScanner{emit: func(text string) { c.print.line("c%d %s %s %s", c.id, name, dir, text) }, show: c.print.show}
	buf := make([]byte, 64<<10)
	for {
		n, err := in.Read(buf)
		frames.feed(buf[:n])
		if n > 0 {
			if _, werr := out.Write(buf[:n]); werr != nil {
				return // the AfterFunc says why
			}
		}
		var reset *quic.StreamError
		switch {
		case err == nil:
			continue
		case errors.Is(err, io.EOF):
			c.print.line("c%d %s %s FIN%s", c.id, name, dir, frames.rest())
			_ = out.Close() // the other side may have gone
		case errors.As(err, &reset) && reset.Remote:
			c.print.line("c%d %s %s reset, code %d%s", c.id, name, dir, reset.ErrorCode, frames.rest())
			out.CancelWrite(reset.ErrorCode)
		}
		return
	}
}
