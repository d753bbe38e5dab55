package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"felix.dev/felix/broker"
	"felix.dev/felix/client"
	"felix.dev/felix/cmd/felix/internal/term"
)

// helloStream is the stream of a broker in development mode.
const helloStream = "demo"

// shownRecords is how many records are shown before the commands to try, so that these stay in sight.
const shownRecords = 6

// HelloConfig shapes Hello. Zero values are the defaults in brackets.
type HelloConfig struct {
	// DataDir is where the broker keeps everything, and finds it again next time. Required.
	DataDir string
	// Listen and Admin are the addresses to listen on (127.0.0.1:5000 and 127.0.0.1:5001, or others if these are
	// taken).
	Listen, Admin string
	// For is how long it all lasts (until ctx ends).
	For time.Duration
	// Every is the time between two records (0.5 s).
	Every time.Duration
	// Out is what it is shown on. Required.
	Out   io.Writer
	Style term.Style
	// Suggest prints commands to try, given the context file (nothing).
	Suggest func(contextFile string)
	// Log gets the broker's log (none).
	Log *slog.Logger
}

// Hello starts a broker, has a publisher and two readers exchange records, shows them, and serves on until For is
// over or ctx ends. It fails if a reader did not get every record once.
func Hello(ctx context.Context, cfg HelloConfig) (err error) {
	if cfg.DataDir == "" || cfg.Out == nil {
		return errors.New("demo: a data directory and somewhere to show things are needed")
	}
	if cfg.Every <= 0 {
		cfg.Every = 500 * time.Millisecond
	}
	h := &hello{cfg: cfg}
	l, err := h.startSomewhere(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.stop(ctx)) }()
	return h.run(ctx, l)
}

// hello is one run.
type hello struct {
	cfg HelloConfig

	mu        sync.Mutex        // guards Out, and what follows
	shown     map[uint64]string // records by offset, as long as they are shown
	published int
	end       uint64 // offset after the last one published
	received  [2]int
	quiet     bool
}

// startSomewhere starts the broker, at other ports if the usual ones are taken and none were asked for.
func (h *hello) startSomewhere(ctx context.Context) (*local, error) {
	cfg := broker.Config{DataDir: h.cfg.DataDir, Listen: h.cfg.Listen, Admin: broker.Admin{Listen: h.cfg.Admin}, Log: h.cfg.Log}
	l, err := startLocal(ctx, cfg)
	if !errors.Is(err, syscall.EADDRINUSE) || cfg.Listen != "" || cfg.Admin.Listen != "" {
		return l, err
	}
	h.line("%s", h.cfg.Style.Dim("the usual ports 5000 and 5001 are not both free, others are used"))
	cfg.Listen, cfg.Admin.Listen = "127.0.0.1:0", "127.0.0.1:0"
	return startLocal(ctx, cfg)
}

func (h *hello) line(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.show(format, args...)
}

// show prints a line; mu is held.
func (h *hello) show(format string, args ...any) { fmt.Fprintf(h.cfg.Out, format+"\n", args...) }

func (h *hello) run(ctx context.Context, l *local) error {
	cfg, err := l.clientConfig(nil)
	if err != nil {
		return err
	}
	c, err := client.Dial(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // the readers have ended
	stream := client.Stream{Namespace: namespace, Name: helloStream}
	admin := "none"
	if addr := l.AdminAddr(); addr != nil {
		admin = "http://" + addr.String()
	}
	h.line("A broker serves at %s (QUIC), its admin at %s, its data is under %s.", h.cfg.Style.Bold(l.Addr().String()), admin, h.cfg.DataDir)
	h.line("A publisher sends to stream %s; one reader begins at the earliest record, the other at the newest.\n", h.cfg.Style.Bold(helloStream))

	var subs [2]*client.Subscription
	for i, from := range []client.Start{client.Earliest(), client.Latest()} {
		if subs[i], err = c.Subscribe(ctx, stream, client.SubscribeConfig{Start: from}); err != nil {
			return err
		}
		defer func() { _ = subs[i].Close() }() // its reader has ended
	}
	h.shown = map[uint64]string{}
	if h.cfg.For > 0 { // from here: how long it takes to connect is the machine's affair
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, h.cfg.For)
		defer cancel()
	}
	group, groupCtx := errgroup.WithContext(ctx)
	stopReading, stop := context.WithCancel(context.WithoutCancel(groupCtx))
	defer stop()
	for i, sub := range subs {
		group.Go(func() error { return h.read(stopReading, i, sub) })
	}
	group.Go(func() error {
		defer stop()
		if err := h.publish(groupCtx, c, stream, l); err != nil {
			return err
		}
		return h.settle(stopReading, subs)
	})
	if err := group.Wait(); err != nil {
		return err
	}
	return h.verify()
}

var readerNames = [2]string{"reader from earliest", "reader from latest"}

// read shows what a reader gets, until ctx ends.
func (h *hello) read(ctx context.Context, i int, sub *client.Subscription) error {
	history := uint64(0)
	for {
		events, err := sub.NextBatch(ctx)
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			return fmt.Errorf("%s: %w", readerNames[i], err)
		}
		h.mu.Lock()
		for _, e := range events {
			if e.Offset < sub.LiveOffset() {
				if history++; e.Offset+1 == sub.LiveOffset() {
					h.show("%s  %s, offsets %d to %d", h.label(i), term.Plural(history, "earlier record"), sub.StartOffset(), e.Offset)
				}
				continue
			}
			h.received[i]++
			if !h.quiet {
				h.show("%s  %s  %s", h.label(i), h.cfg.Style.Dim(fmt.Sprintf("offset %4d", e.Offset)), e.Payload)
			}
			if want, known := h.shown[e.Offset]; known && want != string(e.Payload) {
				h.mu.Unlock()
				return fmt.Errorf("%s: offset %d holds %q, published was %q", readerNames[i], e.Offset, e.Payload, want)
			}
		}
		h.mu.Unlock()
	}
	return nil //nolint:nilerr // the end of ctx is what was waited for
}

func (h *hello) label(i int) string {
	return h.cfg.Style.Voice(i, fmt.Sprintf("%-20s", readerNames[i]))
}

// publish sends a record now and then, until ctx ends.
func (h *hello) publish(ctx context.Context, c *client.Client, stream client.Stream, l *local) error {
	tick := time.NewTicker(h.cfg.Every)
	defer tick.Stop()
	for n := 1; ; n++ {
		text := fmt.Sprintf("hello %d at %s", n, time.Now().Format("15:04:05.000"))
		begin := time.Now()
		// What was begun is finished: the readers are to have something to compare.
		receipt, err := c.Publish(context.WithoutCancel(ctx), stream, client.Message{Payload: []byte(text)})
		if err != nil {
			return fmt.Errorf("publisher: %w", err)
		}
		took := time.Since(begin)
		h.mu.Lock()
		h.published++
		h.end = receipt.Offset + 1
		if !h.quiet {
			h.shown[receipt.Offset] = text
			h.show("%s  %s  %s  %s", h.cfg.Style.Bold(fmt.Sprintf("%-20s", "publisher")), h.cfg.Style.Dim(fmt.Sprintf("offset %4d", receipt.Offset)),
				text, h.cfg.Style.Dim("on disk after "+term.Duration(took)))
		}
		h.mu.Unlock()
		if n == shownRecords {
			h.pauseShow(ctx, l)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// pauseShow prints what to try next and shows no more records, so that it stays in sight.
func (h *hello) pauseShow(ctx context.Context, l *local) {
	wait := time.NewTimer(h.cfg.Every) // for the readers' lines
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.quiet = true
	h.show("")
	if h.cfg.Suggest != nil {
		h.cfg.Suggest(l.contextFile)
	}
	until := "until Ctrl-C"
	if h.cfg.For > 0 {
		until = "for " + h.cfg.For.String()
	}
	h.show("%s", h.cfg.Style.Dim("publisher, readers and broker go on "+until))
}

// settle waits until both readers have read up to the end.
func (h *hello) settle(ctx context.Context, subs [2]*client.Subscription) error {
	h.mu.Lock()
	end := h.end
	h.mu.Unlock()
	limit := time.NewTimer(10 * time.Second)
	defer limit.Stop()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for {
		if subs[0].Position() >= end && subs[1].Position() >= end {
			return nil
		}
		select {
		case <-look.C:
		case <-limit.C:
			return fmt.Errorf("a reader has not got the last record, offset %d, within 10 s", end-1)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// verify says what came of it.
func (h *hello) verify() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.show("\npublished %s; the readers got %d and %d of them", term.Plural(h.published, "record"), h.received[0], h.received[1])
	for i, n := range h.received {
		if n < h.published {
			return fmt.Errorf("%s: got %d of %s", readerNames[i], n, term.Plural(h.published, "record"))
		}
	}
	return nil
}
