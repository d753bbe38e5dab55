package bench

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestPacer(t *testing.T) {
	p, err := newPacer()
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	for _, d := range []time.Duration{-time.Second, 0, time.Microsecond, 2 * time.Millisecond} {
		start := time.Now()
		if err := p.wait(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took < d {
			t.Errorf("a wait of %v took %v", d, took)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	boom := errors.New("boom")
	time.AfterFunc(time.Millisecond, func() { cancel(boom) })
	if err := p.wait(ctx, time.Hour); !errors.Is(err, boom) {
		t.Errorf("a wait that was interrupted returned %v", err)
	}
}
