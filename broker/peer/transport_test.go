package peer

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

// TestClose: everything that waits ends, and nothing begins anymore.
func TestClose(t *testing.T) {
	d := newTown(t)
	a, b := d.node("a"), d.node("b")
	entered, ended := make(chan struct{}), make(chan error, 1)
	b.Handle(KindRaft, func(ctx context.Context, c *Conn) {
		close(entered)
		_, err := c.Read(make([]byte, 1))
		<-ctx.Done()
		ended <- errors.Join(err, c.Close())
	})
	out, err := a.Dial(t.Context(), "b", KindRaft, "")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	<-entered
	var closing sync.WaitGroup
	for range 2 {
		closing.Go(func() { _ = b.Close() })
	}
	closing.Wait()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("the handler's read gave no error")
		}
	default:
		t.Error("Close did not wait for the handler")
	}
	if err := out.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Error(err)
	}
	if _, err := out.Read(make([]byte, 1)); err == nil || isTimeout(err) {
		t.Errorf("the other side sees %v", err)
	}
	if _, err := a.Dial(t.Context(), "b", KindRaft, ""); !errors.Is(err, ErrUnreachable) {
		t.Errorf("dialing one that is closed: %v", err)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if _, err := a.Dial(t.Context(), "b", KindRaft, ""); !errors.Is(err, ErrClosed) {
		t.Errorf("dialing from one that is closed: %v", err)
	}
	if err := a.Call(t.Context(), "b", "x", nil, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("calling from one that is closed: %v", err)
	}
	a.Serve()
}

// TestCloseWithoutServe: those that wait to be accepted are let go.
func TestCloseWithoutServe(t *testing.T) {
	d := newTown(t)
	a := d.node("a")
	b := d.listen(d.config("b"))
	failed := make(chan error, 1)
	go func() {
		_, err := a.Dial(t.Context(), "b", KindRaft, "")
		failed <- err
	}()
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if err := <-failed; !errors.Is(err, ErrUnreachable) {
		t.Errorf("got %v", err)
	}
}
