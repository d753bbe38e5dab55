package peer

import (
	"io"
	"testing"
	"time"
)

// TestCloseWhileStuck: closing a connection whose peer takes nothing does not wait for it.
func TestCloseWhileStuck(t *testing.T) {
	t.Parallel()
	nw, nodes := onNetwork(t, func(*Config) {}, "a", "b")
	conn, err := nodes["a"].Dial(t.Context(), "b", KindRaft, "")
	if err != nil {
		t.Fatal(err)
	}
	nw.Cut("a", "b")
	// Fill every buffer on the way.
	if err := conn.SetWriteDeadline(time.Now().Add(500 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := io.CopyN(conn, zeros{}, 256<<20); !isTimeout(err) {
		t.Fatalf("%d bytes were taken, %v", n, err)
	}
	start := time.Now()
	_ = conn.Close() // what it says is not what this is about
	if d := time.Since(start); d > 3*time.Second {
		t.Errorf("Close took %v; TLS alone would take five seconds", d)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }
