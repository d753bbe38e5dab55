package demo

import (
	"bytes"
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"felix.dev/felix/broker"
)

// screen is a terminal that a test may look at while it is written on.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func TestHello(t *testing.T) {
	dir := t.TempDir()
	for round, wants := range [][]string{
		{"on disk after", "reader from earliest  offset    0  hello 1", "reader from latest    offset    0  hello 1", "SUGGESTED " + broker.DevContext(dir)},
		// The data is still there the second time.
		{"earlier records, offsets 0 to ", "SUGGESTED"},
	} {
		var out screen
		ctx, cancel := context.WithCancel(t.Context())
		err := Hello(ctx, HelloConfig{
			DataDir: dir, Listen: "127.0.0.1:0", Admin: "127.0.0.1:0", Every: 5 * time.Millisecond, Out: &out,
			Suggest: func(file string) {
				_, _ = out.Write([]byte("SUGGESTED " + file + "\n"))
				cancel()
			},
		})
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range wants {
			if !strings.Contains(out.String(), want) {
				t.Errorf("round %d does not show %q:\n%s", round, want, out.String())
			}
		}
	}
}

func TestHelloEnds(t *testing.T) {
	var out screen
	if err := Hello(t.Context(), HelloConfig{DataDir: t.TempDir(), Listen: "127.0.0.1:0", Admin: "127.0.0.1:0", For: 300 * time.Millisecond, Out: &out}); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if !strings.Contains(out.String(), "published 1 record; the readers got 1 and 1") {
		t.Errorf("it shows\n%s", out.String())
	}
}

func TestHelloElsewhere(t *testing.T) {
	// Whether the usual ports are free or not when this runs: afterwards one of them is not.
	if taken, err := net.Listen("tcp", "127.0.0.1:5001"); err == nil {
		defer taken.Close()
	}
	var out screen
	if err := Hello(t.Context(), HelloConfig{DataDir: t.TempDir(), For: 300 * time.Millisecond, Out: &out}); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if !strings.Contains(out.String(), "others are used") || strings.Contains(out.String(), ":5001") && strings.Contains(out.String(), "127.0.0.1:5000 ") {
		t.Errorf("it shows\n%s", out.String())
	}
}

func TestHelloRefuses(t *testing.T) {
	if err := Hello(t.Context(), HelloConfig{}); err == nil {
		t.Error("it runs without a place for its data")
	}
	dir := t.TempDir()
	b, err := broker.Start(t.Context(), broker.Config{DataDir: dir, Dev: true, Listen: "127.0.0.1:0", Admin: broker.Admin{Disabled: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := b.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	err = Hello(t.Context(), HelloConfig{DataDir: dir, Out: &screen{}})
	if err == nil || !strings.Contains(err.Error(), broker.ErrLocked.Error()) {
		t.Errorf("got %v, want that the data directory is in use", err)
	}
}
