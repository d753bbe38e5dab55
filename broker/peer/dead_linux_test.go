package peer

import (
	"context"
	"errors"
	"io"
	"syscall"
	"testing"
	"time"
)

// TestDead: a connection whose other side takes nothing ends by itself, at either end. B80: no
// FIN comes from a host that is gone.
func TestDead(t *testing.T) {
	t.Parallel()
	d := newTown(t)
	hurry := func(c *Config) { c.DeadAfter = time.Second }
	a, b := d.node("a", hurry), d.node("b", hurry)
	failed := make(chan error, 1)
	b.Handle(KindFetch, func(_ context.Context, c *Conn) { // it sends, and nobody takes it
		_, err := io.Copy(c, zeros{})
		failed <- errors.Join(err, c.Close())
	})
	held := make(chan *Conn, 1)
	b.Handle(KindRaft, func(_ context.Context, c *Conn) { held <- c }) // nor reads it
	in, err := a.Dial(t.Context(), "b", KindFetch, "")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := a.Dial(t.Context(), "b", KindRaft, "")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	defer func() { (<-held).Close() }()

	if err := out.SetWriteDeadline(time.Now().Add(2 * patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, zeros{}); !errors.Is(err, syscall.ETIMEDOUT) {
		t.Errorf("the side that dialed got %v", err)
	}
	select {
	case err := <-failed:
		if !errors.Is(err, syscall.ETIMEDOUT) {
			t.Errorf("the side that listens got %v", err)
		}
	case <-time.After(2 * patience):
		t.Error("the side that listens still waits")
	}
}
