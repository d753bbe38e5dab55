package cli

import (
	"context"
	"strings"
	"testing"

	"felix.dev/felix/broker"
	"felix.dev/felix/broker/vfs/faultfs"
)

// TestTroubleIsShown: a log that failed is in the list of streams with what to do, and a reader that stalls is the
// first of the readers.
func TestTroubleIsShown(t *testing.T) {
	disk := faultfs.New(1)
	dir := t.TempDir()
	h := &house{dir: dir, cfg: broker.Config{DataDir: dir, Dev: true, Listen: "127.0.0.1:0", Admin: broker.Admin{Listen: "127.0.0.1:0"}, FS: disk}}
	h.open(t)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = h.Shutdown(ctx) // says that the log failed
	})
	run := func(args ...string) string {
		t.Helper()
		c := h.start(t.Context(), nil, nil, args...)
		c.wait(t, 0)
		return c.out.String()
	}
	// The last column is only there when there is something in it.
	if got := run("stream", "list"); strings.Contains(got, "disk") {
		t.Errorf("all is well, and the list says\n%s", got)
	}
	disk.Inject(faultfs.Fault{Op: faultfs.OpDatasync, Name: func(name string) bool { return strings.Contains(name, "/demo/") }})
	h.start(t.Context(), nil, nil, "pub", "demo", "lost").wait(t, 1)
	const problem = "shard 0: a write to the disk failed, publishes are refused: check the disk, then restart the broker"
	if got := run("stream", "list"); !strings.Contains(got, problem) {
		t.Errorf("the list says\n%s", got)
	}
	if got := run("stream", "describe", "demo"); !strings.Contains(got, "restart the broker") || !strings.Contains(got, "input/output error") {
		t.Errorf("describe says\n%s", got)
	}

	run("stream", "create", "slow", "--durability", "Memory")
	blocked := &stalled{begun: make(chan struct{}), released: make(chan struct{})}
	h.start(t.Context(), nil, blocked, "sub", "slow")
	reading := h.start(t.Context(), nil, nil, "sub", "slow")
	waitUntil(t, "two readers", func() bool { return h.readers(t) == 2 })
	// More than the client's window and the pipe behind it take.
	record := strings.Repeat("x", 1<<20)
	pub := []string{"pub", "slow"}
	for range 8 {
		run(append(pub, record)...)
	}
	<-blocked.begun
	waitUntil(t, "the one that stalls is shown as blocked", func() bool {
		rows := strings.Split(run("subs", "slow"), "\n")
		return len(rows) > 2 && strings.Contains(rows[1], "blocked") && strings.Contains(rows[2], "waiting")
	})
	rows := strings.Fields(strings.Split(run("subs", "slow"), "\n")[1])
	if rows[0] != "slow" || rows[4] == "0" || rows[6] != "dev/developer" {
		t.Errorf("the first row is %q", rows)
	}
	waitUntil(t, "the other one reads on", func() bool { return strings.Count(reading.out.String(), "\n") == 8 })
	close(blocked.released)
}

// stalled is an output that takes nothing until it is released.
type stalled struct {
	screen
	begun, released chan struct{}
	first           bool
}

func (s *stalled) Write(p []byte) (int, error) {
	if !s.first {
		s.first = true
		close(s.begun)
	}
	<-s.released
	return s.screen.Write(p)
}
