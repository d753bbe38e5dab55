package cli

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestPacer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(1000)
		begin := time.Now()
		for range 1001 {
			if err := p.wait(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(begin); took != time.Second {
			t.Errorf("1000 at 1000/s took %v after the first", took)
		}

		// After a pause it catches up by a tenth of a second.
		time.Sleep(time.Hour)
		begin = time.Now()
		for range 201 {
			if err := p.wait(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(begin); took != 100*time.Millisecond {
			t.Errorf("200 after a pause took %v, want 100ms for the half that is not made up for", took)
		}

		// Slower than that it is late by one at most.
		p = newPacer(0.5)
		begin = time.Now()
		for range 3 {
			if err := p.wait(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(begin); took != 4*time.Second {
			t.Errorf("three at one every 2 s took %v", took)
		}

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := p.wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the end of the context", err)
		}
		if err := newPacer(0).wait(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
