package seglog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"felix.dev/felix/broker/vfs"
)

// Inspect reads a whole log that isn't open and checks every record. It changes
// nothing. The error is the file system's; what is wrong with the log is in the
// report.
func Inspect(fsys vfs.FS, dir string) (Report, error) {
	if _, err := fsys.Stat(dir); err != nil {
		return Report{}, fmt.Errorf("seglog: inspect: %w", err)
	}
	ls, err := list(fsys, dir)
	if err != nil {
		return Report{}, err
	}
	in := &inspector{fs: fsys, ls: ls, rep: Report{Dir: dir}}
	if err := in.segments(); err != nil {
		return in.rep, err
	}
	in.leftovers()
	return in.rep, nil
}

type inspector struct {
	fs    vfs.FS
	ls    listing
	rep   Report
	known bool // the incarnation is
}

// problem notes what stops a reader or an Open.
func (in *inspector) problem(p *Problem, row *SegmentReport) {
	if row != nil && row.Problem == nil {
		row.Problem = p
	}
	if in.rep.Problem == nil || (in.rep.Problem.Torn && !p.Torn) {
		in.rep.Problem = p
	}
	v := VerdictRefused
	if p.Torn {
		v = VerdictRepairable
	}
	in.rep.Verdict = max(in.rep.Verdict, v)
}

func (in *inspector) note(format string, args ...any) {
	in.rep.Notes = append(in.rep.Notes, fmt.Sprintf(format, args...))
}

func (in *inspector) segments() error {
	bases := in.ls.segments
	for i, base := range bases {
		if err := in.segment(i, base); err != nil {
			return err
		}
	}
	if len(bases) == 0 {
		if floor := in.floor(); floor > 0 {
			in.problem(&Problem{Reason: fmt.Sprintf("there is no segment, but the log once reached offset %d", floor)}, nil)
		}
		return nil
	}
	in.rep.Oldest = bases[0]
	for i := range in.rep.Segments {
		row := &in.rep.Segments[i]
		in.rep.Records += row.Records
		in.rep.Bytes += row.Bytes
		in.rep.Next = row.Next
		if row.Problem != nil && !row.Problem.Torn {
			break // what comes after it can't be reached in order
		}
	}
	return nil
}

// floor is the offset below which everything is known to have been durable.
func (in *inspector) floor() uint64 {
	floor := uint64(0)
	if in.ls.mark {
		b, err := vfs.ReadFile(in.fs, filepath.Join(in.rep.Dir, markName))
		next, incarnation, parseErr := parseMark(b)
		switch {
		case err != nil || parseErr != nil:
			in.note("%s is damaged; it is not needed", markName)
		case in.known && incarnation != in.rep.Incarnation:
			in.note("%s belongs to another log", markName)
		default:
			floor = next
		}
	}
	if n := len(in.ls.indexes); n > 0 {
		if base := in.ls.indexes[n-1]; len(in.ls.segments) == 0 || base > in.ls.segments[len(in.ls.segments)-1] {
			floor = max(floor, base+1)
		}
	}
	return floor
}

func (in *inspector) segment(i int, base uint64) error {
	path := pathIn(in.rep.Dir, base, segmentSuffix)
	f, err := in.fs.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return fmt.Errorf("seglog: inspect: %w", err)
	}
	defer func() { _ = f.Close() }() // only read
	size, err := f.Size()
	if err != nil {
		return fmt.Errorf("seglog: inspect %s: %w", path, err)
	}
	row := SegmentReport{Base: base, Next: base, FileBytes: size}
	defer func() { in.rep.Segments = append(in.rep.Segments, row) }()

	h, err := readSegmentHeader(f, base)
	var bad *CorruptionError
	switch {
	case errors.As(err, &bad):
		in.problem(&Problem{Segment: base, Offset: base, Reason: bad.Reason}, &row)
		return nil
	case errors.Is(err, ErrFormat):
		in.problem(&Problem{Segment: base, Offset: base, Reason: err.Error()}, &row)
		return nil
	case err != nil:
		return err
	case !in.known:
		in.rep.Incarnation, in.known = h.incarnation, true
	case h.incarnation != in.rep.Incarnation:
		in.problem(&Problem{Segment: base, Offset: base, Reason: fmt.Sprintf("it belongs to another log: incarnation %x, not %x", h.incarnation, in.rep.Incarnation)}, &row)
		return nil
	}
	last := i == len(in.ls.segments)-1
	sc := newScanner(f, size, seedOf(h.incarnation, base), segmentHeaderLen, base)
	defer sc.close()
	scanErr := row.count(sc)
	if asScanEnd(scanErr) != nil {
		return fmt.Errorf("seglog: inspect %s: %w", path, scanErr)
	}
	row.Next, row.Bytes = sc.next, sc.pos
	if _, err := readState(in.fs, in.rep.Dir, base, h.incarnation); err == nil {
		row.StateOK = true
	}
	if last {
		return in.tail(sc, scanErr, &row)
	}
	following := in.ls.segments[i+1]
	if sc.next != following {
		reason := scanErr.Error()
		if errors.Is(scanErr, errEnd) {
			reason = fmt.Sprintf("it ends at offset %d but the next segment begins at %d", sc.next, following)
		}
		in.problem(&Problem{Segment: base, Pos: sc.pos, Offset: min(sc.next, following), Reason: reason}, &row)
	}
	x, err := readIndex(in.fs, pathIn(in.rep.Dir, base, indexSuffix), base, h.incarnation)
	row.IndexOK = err == nil && x.next == following && x.end <= size
	if !row.IndexOK {
		in.note("%s has no good index; it is rebuilt when it is needed", segmentName(base))
	}
	return nil
}

func (in *inspector) tail(sc *scanner, scanErr error, row *SegmentReport) error {
	row.IndexOK = true
	end, err := judgeTail(sc, scanErr, row.Base, in.floor())
	if err != nil {
		return fmt.Errorf("seglog: inspect segment %s: %w", segmentName(row.Base), err)
	}
	switch {
	case end.bad != nil:
		in.problem(&Problem{Segment: row.Base, Pos: end.bad.Pos, Offset: end.bad.Offset, Reason: end.bad.Reason}, row)
	case end.cut != nil:
		in.problem(&Problem{
			Segment: row.Base, Pos: end.cut.Pos, Offset: end.cut.Offset, Torn: true,
			Reason: fmt.Sprintf("%s; %d bytes are cut when it is opened", end.cut.Reason, end.cut.Bytes),
		}, row)
	}
	return nil
}

// count reads records to their end.
func (row *SegmentReport) count(sc *scanner) error {
	for {
		h, _, err := sc.record()
		if err != nil {
			return err
		}
		row.Records++
		if h.kind != KindEvents {
			row.Hidden++
		}
		t := time.UnixMicro(h.time)
		if row.Records == 1 || t.Before(row.Oldest) {
			row.Oldest = t
		}
		if row.Records == 1 || t.After(row.Newest) {
			row.Newest = t
		}
	}
}

// leftovers notes files that belong to no segment.
func (in *inspector) leftovers() {
	for suffix, bases := range map[string][]uint64{indexSuffix: in.ls.indexes, stateSuffix: in.ls.states} {
		for _, base := range bases {
			if _, ok := slices.BinarySearch(in.ls.segments, base); !ok {
				in.note("%s belongs to no segment", filepath.Base(pathIn(in.rep.Dir, base, suffix)))
			}
		}
	}
	for _, name := range in.ls.temps {
		in.note("%s is unfinished", name)
	}
	for _, name := range in.ls.other {
		in.note("%s is not the log's", name)
	}
	slices.Sort(in.rep.Notes)
}
