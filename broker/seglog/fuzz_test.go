package seglog

import (
	"bytes"
	"errors"
	"testing"

	"felix.dev/felix/broker/vfs/faultfs"
)

// FuzzRecordHeader: no input makes the parser panic or read past its end, and what
// it accepts is what appendRecord writes.
func FuzzRecordHeader(f *testing.F) {
	seed := seedOf(testIncarnation, 40)
	for _, r := range []Record{batch(40, 1, 20), withProducer(batch(42, 3, 15), 1, 9), generation(41)} {
		f.Add(appendRecord(nil, &r, seed, r.Base))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := parseRecordHeader(b, seed)
		if err != nil {
			return
		}
		if h.bodyLen > maxBodyLen || h.count == 0 || h.next() <= h.base {
			t.Fatalf("accepted %+v", h)
		}
		if h.size() > len(b) {
			return
		}
		r := h.record(b[h.headerLen():h.size()])
		again := appendRecord(nil, &r, seed, h.stable)
		// The header vouches for the body's checksum, not for the body.
		if !bytes.Equal(again[8:h.headerLen()], b[8:h.headerLen()]) {
			t.Fatalf("header\n%x is written as\n%x", b[:h.headerLen()], again[:h.headerLen()])
		}
	})
}

// FuzzOpen: whatever is in a log's files, Open returns, a log that is opened can be
// read to an end, and what Inspect says agrees with it.
func FuzzOpen(f *testing.F) {
	d := newDisk(f)
	l, _ := mustOpen(f, d.config())
	for l.Next() < 30 {
		mustAppend(f, l, batch(l.Next(), 2, 100))
	}
	mustClose(f, l)
	bases := d.bases(segmentSuffix)
	last := d.read(d.path(bases[len(bases)-1], segmentSuffix))
	index := d.read(d.path(bases[0], indexSuffix))
	mark := d.read(diskDir + "/" + markName)
	f.Add(last, index, mark, []byte(nil))
	f.Add(last[:len(last)-20], index[:50], mark[:3], appendState(nil, bases[1], testIncarnation, []byte("x")))
	f.Add([]byte(nil), []byte(nil), []byte(nil), []byte(nil))
	f.Fuzz(func(t *testing.T, last, index, mark, state []byte) {
		d := &disk{t: t, fs: d.fs.CrashImage(faultfs.Keep, 0)}
		d.write(d.path(bases[len(bases)-1], segmentSuffix), last)
		d.write(d.path(bases[0], indexSuffix), index)
		d.write(d.path(bases[1], stateSuffix), state)
		d.write(diskDir+"/"+markName, mark)
		rep, err := Inspect(d.fs, diskDir)
		if err != nil {
			t.Fatalf("inspect: %v", err)
		}
		cfg := d.config()
		cfg.RestoreState = func([]byte) error { return nil }
		l, rec, err := Open(cfg)
		if err != nil {
			if !errors.Is(err, ErrFormat) || rep.Verdict != VerdictRefused {
				t.Fatalf("open: %v; inspection: %+v", err, rep)
			}
			return
		}
		defer func() { _ = l.Close() }()
		if (rec.Corruption != nil) != (rep.Verdict == VerdictRefused) || (rec.Cut != nil) != (rep.Verdict == VerdictRepairable) {
			t.Fatalf("recovery: %+v; inspection: %+v", rec, rep)
		}
		evs, err := readAll(l, rec.Oldest, 1000)
		if bad, ok := isCorruption(err); err != nil && (!ok || bad.Offset != rep.Next) {
			t.Fatalf("read to %d of %d: %v", len(evs), rep.Next, err)
		}
		if rec.Corruption == nil {
			mustAppend(t, l, batch(rec.Next, 1, 10))
		}
	})
}
