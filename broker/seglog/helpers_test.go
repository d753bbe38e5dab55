package seglog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"felix.dev/felix/broker/vfs"
	"felix.dev/felix/broker/vfs/faultfs"
	"felix.dev/felix/broker/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var testIncarnation = [16]byte{0xf0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}

// commits collects what a log reports, for tests to wait on.
type commits struct {
	mu    sync.Mutex
	cond  *sync.Cond
	next  uint64
	err   error
	calls int
	errs  int
	wrong error // a call that broke the order
}

func newCommits() *commits {
	c := &commits{}
	c.cond = sync.NewCond(&c.mu)
	return c
}

func (c *commits) report(next uint64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls++
	switch {
	case err != nil:
		c.errs++
		c.err = err
		if c.errs > 1 {
			c.wrong = fmt.Errorf("failure reported %d times", c.errs)
		}
	case c.err != nil:
		c.wrong = fmt.Errorf("offset %d reported after the failure", next)
	case next <= c.next:
		c.wrong = fmt.Errorf("offset %d reported after %d", next, c.next)
	}
	c.next = max(c.next, next)
	c.cond.Broadcast()
}

// wait blocks until everything below next is committed or the log has failed.
func (c *commits) wait(next uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.next < next && c.err == nil {
		c.cond.Wait()
	}
	if c.wrong != nil {
		return c.wrong
	}
	if c.next < next {
		return c.err
	}
	return nil
}

func (c *commits) committed() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.next
}

// payload is what the event at an offset holds, so that any page can be checked.
func payload(offset uint64, size int) []byte {
	s := fmt.Sprintf("event %d ", offset)
	return []byte(s + strings.Repeat(string(rune('a'+offset%26)), max(size-len(s), 0)))
}

// batch makes a record of count events.
func batch(base uint64, count, size int) Record {
	var region []byte
	for i := range count {
		region = wire.AppendRecord(region, payload(base+uint64(i), size))
	}
	frame := wire.BeginOffsetFrame(nil, base, uint32(count), len(region))
	return Record{
		Kind: KindEvents, Base: base, Count: uint32(count), TimeMicros: 1_700_000_000_000_000 + int64(base),
		Frame: append(frame, region...),
	}
}

func withProducer(r Record, id, sequence uint64) Record {
	r.HasProducer, r.Producer, r.Sequence = true, id, sequence
	return r
}

func generation(base uint64) Record {
	return Record{Kind: KindGenerationStart, Base: base, Count: 1, TimeMicros: 1_700_000_000_000_000 + int64(base), Frame: []byte("generation")}
}

func mustOpen(t testing.TB, cfg Config) (*Log, Recovery) {
	t.Helper()
	if cfg.Incarnation == ([16]byte{}) {
		cfg.Incarnation = testIncarnation
	}
	l, rec, err := Open(cfg)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { _ = l.Close() }) // what a test must know of Close it checks itself
	return l, rec
}

func mustAppend(t testing.TB, l *Log, recs ...Record) {
	t.Helper()
	if err := l.Append(recs); err != nil {
		t.Fatalf("append at %d: %v", l.Next(), err)
	}
}

func mustClose(t testing.TB, l *Log) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
}

// event is one delivered event, or a hole that a page reported.
type event struct {
	offset  uint64
	skipped uint64 // hidden offsets directly before it
}

// decodePage checks a page's frames against each other and against payload.
func decodePage(p Page) ([]event, error) {
	var out []event
	next, b, n := p.First, p.Frames, 0
	for len(b) > 0 {
		info, err := wire.PeekOffsetFrame(b)
		if err != nil {
			return nil, err
		}
		if info.Base != next {
			return nil, fmt.Errorf("frame begins at %d, want %d", info.Base, next)
		}
		recs, err := wire.ParseRecords(info.Count, b[wire.OffsetFrameOverhead:info.Size])
		if err != nil {
			return nil, err
		}
		for i, p := range recs.All() {
			offset := info.Base + uint64(i)
			if want := fmt.Sprintf("event %d ", offset); !strings.HasPrefix(string(p), want) {
				return nil, fmt.Errorf("offset %d holds %.20q", offset, p)
			}
			out = append(out, event{offset: offset})
		}
		next += uint64(info.Count)
		b = b[info.Size:]
		n++
	}
	if n != p.Records {
		return nil, fmt.Errorf("page says %d frames and holds %d", p.Records, n)
	}
	if n > 0 && next != p.Next {
		return nil, fmt.Errorf("page ends at %d but says %d", next, p.Next)
	}
	if n > 0 {
		out[0].skipped = p.Skipped
	}
	return out, nil
}

// readAll reads from an offset to the end of the log.
func readAll(l *Log, from uint64, pageBytes int) ([]event, error) {
	return readUntil(l, from, l.Next(), pageBytes)
}

func readUntil(l *Log, from, limit uint64, pageBytes int) ([]event, error) {
	var out []event
	var buf []byte
	c := l.NewCursor(from)
	for c.Offset() < limit {
		at := c.Offset()
		p, err := c.Read(limit, pageBytes, buf)
		if err != nil {
			return out, err
		}
		if p.Next <= at {
			return out, fmt.Errorf("no progress at %d of %d", at, limit)
		}
		evs, err := decodePage(p)
		if err != nil {
			return out, fmt.Errorf("page at %d: %w", at, err)
		}
		out = append(out, evs...)
		buf = p.Frames
	}
	return out, nil
}

// checkDense reads everything and fails unless it is the events of [from, to).
func checkDense(t testing.TB, l *Log, from, to uint64) {
	t.Helper()
	evs, err := readUntil(l, from, to, 8<<10)
	if err != nil {
		t.Fatalf("read [%d, %d): %v", from, to, err)
	}
	if uint64(len(evs)) != to-from {
		t.Fatalf("read %d events of [%d, %d)", len(evs), from, to)
	}
	for i, e := range evs {
		if e.offset != from+uint64(i) {
			t.Fatalf("event %d is offset %d, want %d", i, e.offset, from+uint64(i))
		}
	}
}

// eventually polls for what a log's keeper does in its own time on a real disk.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); {
		if time.Now().After(deadline) {
			t.Fatalf("not within 20 s: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

func mustWrite(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func mustRead(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func isCorruption(err error) (*CorruptionError, bool) {
	var c *CorruptionError
	return c, errors.As(err, &c)
}

// disk is a log's configuration on a file system in memory, and ways to damage it.
type disk struct {
	t  testing.TB
	fs *faultfs.FS
}

const diskDir = "/data/log"

func newDisk(t testing.TB) *disk { return &disk{t: t, fs: faultfs.New(1)} }

// config is that of a log with small segments.
func (d *disk) config() Config {
	return Config{FS: d.fs, Dir: diskDir, SegmentBytes: 4 << 10, IndexEvery: 256, Incarnation: testIncarnation}
}

// crash returns what a power cut would leave.
func (d *disk) crash(p faultfs.Policy, seed uint64) *disk {
	return &disk{t: d.t, fs: d.fs.CrashImage(p, seed)}
}

// copy returns what is there now.
func (d *disk) copy() *disk { return d.crash(faultfs.Keep, 0) }

func (d *disk) path(base uint64, suffix string) string { return pathIn(diskDir, base, suffix) }

func (d *disk) read(path string) []byte {
	d.t.Helper()
	b, err := vfs.ReadFile(d.fs, path)
	if err != nil {
		d.t.Fatal(err)
	}
	return b
}

func (d *disk) write(path string, b []byte) {
	d.t.Helper()
	if err := vfs.WriteFileAtomic(d.fs, path, b, 0o600); err != nil {
		d.t.Fatal(err)
	}
}

func (d *disk) remove(path string) {
	d.t.Helper()
	if err := d.fs.Remove(path); err != nil {
		d.t.Fatal(err)
	}
}

func (d *disk) flip(path string, pos int64, bit int) {
	d.t.Helper()
	b := d.read(path)
	b[pos] ^= 1 << bit
	d.write(path, b)
}

func (d *disk) bases(suffix string) []uint64 {
	d.t.Helper()
	ls, err := list(d.fs, diskDir)
	if err != nil {
		d.t.Fatal(err)
	}
	switch suffix {
	case indexSuffix:
		return ls.indexes
	case stateSuffix:
		return ls.states
	}
	return ls.segments
}

// fill appends records of one event until the log holds n, each committed before
// the next; it returns the position of each in its segment.
func fillLog(t testing.TB, l *Log, c *commits, n uint64, size int) []int64 {
	t.Helper()
	var at []int64
	for l.Next() < n {
		mustAppend(t, l, batch(l.Next(), 1, size))
		end := l.active.Load().seg.end.Load()
		at = append(at, end-recordHeaderLen-int64(len(batch(l.Next()-1, 1, size).Frame)))
		if err := c.wait(l.Next()); err != nil {
			t.Fatal(err)
		}
	}
	return at
}

// batchOf makes a record of one event with the given payload.
func batchOf(base uint64, payload []byte) Record {
	region := wire.AppendRecord(nil, payload)
	return Record{Kind: KindEvents, Base: base, Count: 1, Frame: append(wire.BeginOffsetFrame(nil, base, 1, len(region)), region...)}
}

// reseal makes the checksum of a changed segment header right again.
func reseal(h []byte) []byte {
	binary.BigEndian.PutUint32(h[60:], crc32.Checksum(h[:60], castagnoli))
	return h
}
