package faults_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"

	"felix.dev/felix/client"
)

// testWait bounds every wait of a test. It is no measure of anything.
const testWait = 2 * time.Minute

// scaled is a volume: under the race detector, which makes everything ten times as
// slow, it is a part of it that still passes all buffers.
func scaled(n, underRace uint64) uint64 {
	if raceEnabled {
		return underRace
	}
	return n
}

// eventually polls until ok, and fails the test after a while.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(testWait)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", testWait, what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// bounded is a context of the test that ends after testWait, so that what hangs says
// where it hangs.
func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), testWait, fmt.Errorf("not within %s", testWait))
	t.Cleanup(cancel)
	return ctx
}

// recordHead is the part of a record that says which one it is.
const recordHead = 12

// record is number n of a source, of size bytes (at least recordHead). Every byte of
// it follows from the two.
func record(source uint32, n uint64, size int) []byte {
	b := make([]byte, max(size, recordHead))
	binary.BigEndian.PutUint32(b, source)
	binary.BigEndian.PutUint64(b[4:], n)
	copy(b[recordHead:], filling(n))
	return b
}

// filling is what the rest of record n begins with.
func filling(n uint64) []byte { return pattern[n%256:] }

// pattern is longer than any record of a test.
var pattern = func() []byte {
	b := make([]byte, 8<<20)
	for i := range b {
		b[i] = byte(i) ^ byte(i>>8)
	}
	return b
}()

// parseRecord reads a record back and checks all of it.
func parseRecord(b []byte) (source uint32, n uint64, err error) {
	if len(b) < recordHead {
		return 0, 0, fmt.Errorf("a record of %d bytes is none of ours", len(b))
	}
	source, n = binary.BigEndian.Uint32(b), binary.BigEndian.Uint64(b[4:])
	if rest := b[recordHead:]; !bytes.Equal(rest, filling(n)[:len(rest)]) {
		return source, n, fmt.Errorf("record %d of source %d is damaged", n, source)
	}
	return source, n, nil
}

// published is one record that was acknowledged.
type published struct{ offset, number uint64 }

// publish sends records [from, from+n) of a source, a window at a time, and fails the
// test unless each is acknowledged with its offset.
func publish(t *testing.T, p *client.Publisher, source uint32, from, n uint64, size int) []published {
	t.Helper()
	got, err := tryPublish(bounded(t), p, source, from, n, size)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// tryPublish is publish for goroutines that are not the test's own.
func tryPublish(ctx context.Context, p *client.Publisher, source uint32, from, n uint64, size int) ([]published, error) {
	pending := make([]*client.Pending, 0, n)
	for i := range n {
		k, err := p.Publish(ctx, client.Message{Payload: record(source, from+i, size)})
		if err != nil {
			return nil, fmt.Errorf("publish record %d of source %d: %w", from+i, source, err)
		}
		pending = append(pending, k)
	}
	got := make([]published, 0, n)
	for i, k := range pending {
		r, err := k.Wait(ctx)
		switch {
		case err != nil:
			return got, fmt.Errorf("record %d of source %d: %w", from+uint64(i), source, err)
		case !r.HasOffset:
			return got, fmt.Errorf("record %d of source %d: acknowledged without an offset", from+uint64(i), source)
		}
		got = append(got, published{r.Offset, from + uint64(i)})
	}
	return got, nil
}

// reader follows one subscription and holds it to the order of offsets.
type reader struct {
	sub  *client.Subscription
	next uint64 // offset of the next event
	// check is called with each event, if set.
	check func(e *client.Event, source uint32, number uint64) error
}

func newReader(sub *client.Subscription) *reader {
	return &reader{sub: sub, next: sub.StartOffset()}
}

// take looks at events.
func (r *reader) take(events []client.Event) error {
	for i := range events {
		e := &events[i]
		switch {
		case !e.HasOffset:
			return fmt.Errorf("the event after offset %d has none", r.next)
		case e.Offset != r.next || e.Gap != 0 || e.Skipped != 0:
			return fmt.Errorf("got offset %d (gap %d, skipped %d), want %d", e.Offset, e.Gap, e.Skipped, r.next)
		}
		r.next++
		source, number, err := parseRecord(e.Payload)
		if err != nil {
			return err
		}
		if r.check != nil {
			if err := r.check(e, source, number); err != nil {
				return err
			}
		}
	}
	return nil
}

// until reads up to an offset, exclusive.
func (r *reader) until(ctx context.Context, end uint64) error {
	for r.next < end {
		events, err := r.sub.NextBatch(ctx)
		if err != nil {
			return fmt.Errorf("at offset %d of %d: %w", r.next, end, cause(ctx, err))
		}
		if err := r.take(events); err != nil {
			return err
		}
	}
	return nil
}

// one reads one event.
func (r *reader) one(ctx context.Context) (client.Event, error) {
	e, err := r.sub.Next(ctx)
	if err != nil {
		return e, fmt.Errorf("at offset %d: %w", r.next, cause(ctx, err))
	}
	return e, r.take([]client.Event{e})
}

// toEnd reads until the subscription ends and returns why it did.
func (r *reader) toEnd(ctx context.Context) error {
	for {
		events, err := r.sub.NextBatch(ctx)
		if err != nil {
			return cause(ctx, err)
		}
		if err := r.take(events); err != nil {
			return err
		}
	}
}

// cause names the deadline that ended a wait.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return context.Cause(ctx)
	}
	return err
}

// numbered checks that record n is at offset first+n: one publisher, one at a time.
func numbered(first uint64) func(*client.Event, uint32, uint64) error {
	return func(e *client.Event, _ uint32, number uint64) error {
		if e.Offset != first+number {
			return fmt.Errorf("record %d is at offset %d, want %d", number, e.Offset, first+number)
		}
		return nil
	}
}
