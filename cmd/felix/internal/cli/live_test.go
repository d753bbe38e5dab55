package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"felix.dev/felix/broker"
	"felix.dev/felix/broker/admin"
	"felix.dev/felix/cmd/felix/internal/settings"
)

// screen is standard output or error that a test may look at while it is written on.
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

// waitUntil waits for something that another goroutine or the network does.
func waitUntil(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if is() {
			return
		}
	}
	t.Fatalf("%s: not within %v", what, patience)
}

// house is a broker of a test and its surroundings.
type house struct {
	dir string
	cfg broker.Config
	*broker.Broker
}

func newHouse(t *testing.T, change func(*broker.Config)) *house {
	t.Helper()
	dir := t.TempDir()
	h := &house{dir: dir, cfg: broker.Config{DataDir: dir, Dev: true, Listen: "127.0.0.1:0", Admin: broker.Admin{Listen: "127.0.0.1:0"}}}
	if change != nil {
		change(&h.cfg)
	}
	h.open(t)
	t.Cleanup(func() { h.close(t) })
	return h
}

func (h *house) open(t *testing.T) {
	t.Helper()
	b, err := broker.Start(context.Background(), h.cfg)
	if err != nil {
		t.Fatal(err)
	}
	h.Broker = b
	h.cfg.Listen = b.Addr().String() // the same the next time
}

func (h *house) close(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := h.Shutdown(ctx); err != nil {
		t.Errorf("shutdown: %v", err)
	}
}

// command is a run of the command line.
type command struct {
	out, err screen
	status   int
	ended    chan struct{}
}

// start runs a command line beside the test. stdout nil: the command's own screen.
func (h *house) start(ctx context.Context, stdin io.Reader, stdout io.Writer, args ...string) *command {
	c := &command{ended: make(chan struct{})}
	if stdout == nil {
		stdout = &c.out
	}
	file := filepath.Join(h.dir, "dev", "context.yaml")
	env := Env{
		Stdin: stdin, Stdout: stdout, Stderr: &c.err,
		Sources: settings.Sources{Getenv: func(k string) string { return map[string]string{settings.EnvContext: file}[k] }},
	}
	go func() {
		defer close(c.ended)
		c.status = Run(ctx, env, args)
	}()
	return c
}

// wait waits for the end of a command and wants its exit status.
func (c *command) wait(t *testing.T, status int) {
	t.Helper()
	select {
	case <-c.ended:
	case <-time.After(patience):
		t.Fatalf("it does not end; it has said\n%s\n%s", c.out.String(), c.err.String())
	}
	if c.status != status {
		t.Errorf("exit status %d, want %d\n%s", c.status, status, c.err.String())
	}
}

func (h *house) readers(t *testing.T) int {
	t.Helper()
	list, err := h.Broker.Admin().Subscriptions(t.Context(), admin.Name{})
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// TestSubOverRestart: a reader goes on after the broker has restarted, and says so.
func TestSubOverRestart(t *testing.T) {
	h := newHouse(t, nil)
	sub := h.start(t.Context(), nil, nil, "sub", "demo", "--from", "earliest", "-n", "4")
	h.start(t.Context(), nil, nil, "pub", "demo", "a", "b").wait(t, 0)
	waitUntil(t, "two records", func() bool { return sub.out.String() == "a\nb\n" })

	h.close(t)
	h.open(t)
	h.start(t.Context(), nil, nil, "pub", "demo", "c", "d").wait(t, 0)
	sub.wait(t, 0)
	if got := sub.out.String(); got != "a\nb\nc\nd\n" {
		t.Errorf("it read %q", got)
	}
	for _, want := range []string{"# lost:", "# going on at offset 2 after", "# read 4 records (4 B) from demo"} {
		if !strings.Contains(sub.err.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, sub.err.String())
		}
	}
}

// TestSubSlow: a reader whose output nobody takes is ended by the broker, goes on by itself, and misses nothing. // B01
func TestSubSlow(t *testing.T) {
	h := newHouse(t, nil)
	name := admin.Name{Tenant: "dev", Namespace: "default", Stream: "small"}
	_, _, err := h.Broker.Admin().CreateStream(t.Context(), admin.StreamSpec{Name: name, Durability: "Durable", Queue: admin.Queue{Entries: 8}}, "")
	if err != nil {
		t.Fatal(err)
	}
	reads, writes := io.Pipe()
	const records = 4000
	sub := h.start(t.Context(), nil, writes, "sub", "small", "-n", fmt.Sprint(records))
	waitUntil(t, "a reader", func() bool { return h.readers(t) == 1 })

	// Nobody takes its output yet. 4000 KiB are more than its receive window and eight batches.
	var input strings.Builder
	for i := range records {
		fmt.Fprintf(&input, "%04d%s\n", i, strings.Repeat("x", 1000))
	}
	h.start(t.Context(), strings.NewReader(input.String()), nil, "pub", "small").wait(t, 0)

	all, err := readAllLines(reads, records)
	if err != nil {
		t.Fatal(err)
	}
	sub.wait(t, 0)
	for i, line := range all {
		if !strings.HasPrefix(line, fmt.Sprintf("%04d", i)) {
			t.Fatalf("line %d begins with %.4q", i, line)
		}
	}
	if got := sub.err.String(); !strings.Contains(got, "# too slow: the broker ended the reading at offset") || !strings.Contains(got, "# going on at offset") {
		t.Errorf("it does not say that it was too slow:\n%s", got)
	}

	// With --no-resume the same is an error that says where to go on.
	waitUntil(t, "the first reader is gone", func() bool { return h.readers(t) == 0 }) // or it would count as the next one
	sub = h.start(t.Context(), nil, blocked{h, t, input.String()}, "sub", "small", "--no-resume", "-n", fmt.Sprint(records))
	waitUntil(t, "a reader", func() bool { return h.readers(t) == 1 })
	h.start(t.Context(), nil, nil, "pub", "small", "first").wait(t, 0)
	sub.wait(t, 1)
	if got := sub.err.String(); !strings.Contains(got, "felix: the subscription was too slow") || !strings.Contains(got, "; retrying helps: --from") {
		t.Errorf("it says\n%s", got)
	}
}

// blocked is an output that takes nothing until a lot was published.
type blocked struct {
	h     *house
	t     *testing.T
	input string
}

func (b blocked) Write(p []byte) (int, error) {
	if bytes.HasPrefix(p, []byte("first")) {
		pub := b.h.start(context.Background(), strings.NewReader(b.input), nil, "pub", "small")
		<-pub.ended
		if pub.status != 0 {
			b.t.Errorf("pub: %s", pub.err.String())
		}
	}
	return len(p), nil
}

// readAllLines reads n lines.
func readAllLines(r io.Reader, n int) ([]string, error) {
	var text bytes.Buffer
	buf := make([]byte, 64<<10)
	for bytes.Count(text.Bytes(), []byte("\n")) < n {
		k, err := r.Read(buf)
		if err != nil {
			return nil, err
		}
		text.Write(buf[:k])
	}
	return strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n"), nil
}

// TestInterrupted: what Ctrl-C means to each command.
func TestInterrupted(t *testing.T) {
	h := newHouse(t, nil)
	ctx, interrupt := context.WithCancel(t.Context())
	sub := h.start(ctx, nil, nil, "sub", "demo")
	watch := h.start(ctx, nil, nil, "subs", "--watch")
	stdin, typist := io.Pipe()
	pub := h.start(ctx, stdin, nil, "pub", "demo")
	waitUntil(t, "a reader", func() bool { return h.readers(t) == 1 })
	if _, err := io.WriteString(typist, "one\n"); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "the record", func() bool { return sub.out.String() == "one\n" })
	waitUntil(t, "the table", func() bool { return strings.Contains(watch.out.String(), "1 reader, ") })
	interrupt()
	sub.wait(t, 0)
	watch.wait(t, 0)
	pub.wait(t, 1)
	if got := pub.err.String(); !strings.Contains(got, "published 1 record") || !strings.Contains(got, "felix: interrupted before the end of the input") {
		t.Errorf("pub says\n%s", got)
	}
	// The goroutine that waits for input ends with it.
	if err := typist.Close(); err != nil {
		t.Error(err)
	}
}

// TestPubRefused: publishing stops at the first record that is refused, and says which one was why.
func TestPubRefused(t *testing.T) {
	h := newHouse(t, func(c *broker.Config) { c.Limits.MaxRecordBytes = 1000 })
	pub := h.start(t.Context(), nil, nil, "pub", "demo", "fine", strings.Repeat("x", 2000))
	pub.wait(t, 1)
	if got := pub.err.String(); !strings.Contains(got, "felix: publish to default/demo: ") || !strings.Contains(got, "; retrying does not help") {
		t.Errorf("pub says\n%s", got)
	}
	pub = h.start(t.Context(), nil, nil, "pub", "nowhere", "x")
	pub.wait(t, 1)
	if got := pub.err.String(); !strings.Contains(got, "not_found") {
		t.Errorf("pub says\n%s", got)
	}
}
