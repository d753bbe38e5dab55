package seglog

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"sort"

	"felix.dev/felix/broker/vfs"
	"felix.dev/felix/broker/wire"
)

// minWindow is the least that is read from a file at once.
const minWindow = 4096

// Page is a run of records without a hole.
type Page struct {
	// Skipped counts the hidden offsets directly before First that this read passed.
	// Those at the end of an earlier page without frames are not in it.
	Skipped uint64
	First   uint64 // offset of the first event in Frames
	Next    uint64 // where to read on
	// Frames holds whole wire frames in the offset shape, one after another, in the
	// caller's buffer or a larger one. Empty with Next beyond the offset asked for:
	// only hidden records were there. Empty with Next equal to it: nothing below limit.
	Frames  []byte
	Records int // frames in Frames
	// Need is set, without Frames, if the next frame is large and the reader wants to
	// be asked: it is read with a maxBytes of Need.
	Need int
}

// Cursor reads a log in order. It remembers where it is, so that reading on costs
// one read of the file and no search. It holds nothing between reads: retention may
// remove what it points at, the next Read then returns a *TooOldError. It needs no
// Close, and belongs to one goroutine at a time.
type Cursor struct {
	// AskAbove is the largest frame, in bytes, that is read although it is above the
	// maxBytes of a Read. 0: any is. Set it before the first Read.
	AskAbove int

	l    *Log
	next uint64 // offset to deliver next

	seg *segment // nil: to be searched
	pos int64    // of the record in seg that begins at at
	at  uint64   // never above next
}

// NewCursor returns a cursor that begins at the given offset.
func (l *Log) NewCursor(from uint64) *Cursor { return &Cursor{l: l, next: from} }

// Offset is where the next Read begins.
func (c *Cursor) Offset() uint64 { return c.next }

// Seek moves the cursor.
func (c *Cursor) Seek(from uint64) {
	if from != c.next {
		c.next, c.seg = from, nil
	}
}

// Read is Cursor.Read for a single page.
func (l *Log) Read(from, limit uint64, maxBytes int, buf []byte) (Page, error) {
	c := Cursor{l: l, next: from}
	return c.Read(limit, maxBytes, buf)
}

// Read returns the records from the cursor on and moves it behind them: whole
// frames, at most maxBytes of them but at least one, none that reaches limit or
// beyond. The first is cut if the cursor is in its middle. buf is used for them if
// it is large enough; its content is overwritten in any case.
//
// A *TooOldError says that retention has been here, a *CorruptionError that the
// next record is damaged. After any error the cursor stays where it was. Other
// errors come from the file system; trying again may help.
func (c *Cursor) Read(limit uint64, maxBytes int, buf []byte) (Page, error) {
	start := c.next
	page := Page{First: start, Next: start, Frames: buf[:0]}
	limit = min(limit, c.l.Next())
	if oldest := c.l.Oldest(); start < oldest && start < limit {
		c.seg = nil
		return page, &TooOldError{Requested: start, Oldest: oldest}
	}
	for c.next < limit && page.Records == 0 {
		if c.seg != nil {
			if f := c.seg.following.Load(); f != nil && c.next >= f.base {
				c.seg, c.pos, c.at = f, segmentHeaderLen, f.base
			}
		}
		stop, err := c.readOn(limit, maxBytes, &buf, &page)
		if err != nil {
			c.next, c.seg = start, nil // hidden records may have been passed
			return Page{First: start, Next: start, Frames: buf[:0]}, c.fail(err)
		}
		if stop {
			break
		}
	}
	page.Next = c.next
	return page, nil
}

func (c *Cursor) fail(err error) error {
	if _, ok := errors.AsType[*CorruptionError](err); ok {
		c.l.damaged.Add(1)
	}
	return err
}

// readOn reads from one segment; stop says that limit was reached.
func (c *Cursor) readOn(limit uint64, maxBytes int, buf *[]byte, page *Page) (stop bool, err error) {
	s := c.seg
	if s == nil {
		segs := *c.l.segs.Load()
		i := sort.Search(len(segs), func(i int) bool { return segs[i].base > c.next }) - 1
		switch {
		case i < 0 && c.l.corrupt != nil && len(segs) == 0:
			return false, c.l.corrupt
		case i < 0:
			return false, &TooOldError{Requested: c.next, Oldest: c.l.Oldest()}
		}
		s = segs[i]
	}
	if s.damaged != nil {
		return false, s.damaged
	}
	f, ok, err := s.acquire(c.l.fs)
	if err != nil {
		return false, err
	}
	if !ok { // retention took it: search again, which tells what is left
		c.seg = nil
		return false, nil
	}
	defer c.l.release(s)
	if c.seg == nil {
		e, err := c.l.lookup(s, f, c.next)
		if err != nil {
			return false, err
		}
		c.seg, c.pos, c.at = s, e.pos, e.offset
	}
	return c.readSegment(f, limit, maxBytes, buf, page)
}

// readSegment fills the page from the cursor's segment. The file's bytes are read
// into the caller's buffer and the frames moved together in place: what is written
// never overtakes what is still to be parsed, because headers are left out.
func (c *Cursor) readSegment(f vfs.File, limit uint64, maxBytes int, buf *[]byte, page *Page) (stop bool, err error) {
	endOffset := uint64(math.MaxUint64)
	if f := c.seg.following.Load(); f != nil {
		endOffset = f.base // zeros may follow
	}
	end := c.seg.end.Load()
	window := int64(max(maxBytes, minWindow))
	for {
		if c.next >= limit || c.at >= endOffset {
			return c.next >= limit, nil
		}
		raw, err := c.fetch(f, min(window, end-c.pos), buf)
		if err != nil {
			return false, err
		}
		need, stop, err := c.parse(raw, min(limit, endOffset), maxBytes, page)
		switch {
		case page.Records > 0:
			return stop, nil // an error behind them is met again by the next read
		case err != nil:
			return false, err
		case stop && endOffset <= limit && c.next < endOffset:
			return false, c.damage(errNoContinue) // a record reaches into the next segment
		case stop:
			return c.next >= limit || limit < endOffset, nil
		case need > 0:
			if c.pos+need > end || int64(len(raw)) < min(window, end-c.pos) && need <= window {
				return false, c.damage(errShort)
			}
			if c.AskAbove > 0 && need > int64(max(maxBytes, c.AskAbove)) {
				page.Need = int(need)
				return true, nil
			}
			window = max(window, need)
		}
	}
}

// fetch reads n bytes at the cursor's position.
func (c *Cursor) fetch(f vfs.File, n int64, buf *[]byte) ([]byte, error) {
	if n <= 0 {
		return nil, nil
	}
	if int64(cap(*buf)) < n {
		*buf = make([]byte, n)
	}
	raw := (*buf)[:n]
	got, err := f.ReadAt(raw, c.pos)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("seglog: read %s: %w", c.seg.path, err)
	}
	return raw[:got], nil
}

// parse takes records out of raw, the bytes at the cursor's position, and moves the
// cursor behind those it took, up to limit. need is how many bytes the next record takes if raw
// doesn't hold it all and nothing was put into the page.
func (c *Cursor) parse(raw []byte, limit uint64, maxBytes int, page *Page) (need int64, stop bool, err error) {
	r, w := 0, 0
	defer func() {
		c.pos += int64(r)
		page.Frames = raw[:w]
	}()
	for {
		if c.next >= limit {
			return 0, true, nil
		}
		if r > len(raw) { // records before the one asked for were passed
			return 0, false, nil
		}
		h, err := parseRecordHeader(raw[r:], c.seg.seed)
		if errors.Is(err, errShort) {
			if r > 0 {
				return 0, false, nil
			}
			return maxHeaderLen, false, nil
		}
		if err == nil && h.base != c.at {
			err = errNoContinue
		}
		if err != nil {
			bad := c.damage(err)
			bad.Pos += int64(r)
			return 0, false, bad
		}
		if h.next() > limit {
			return 0, true, nil
		}
		size := h.size()
		if h.next() <= c.next {
			r += size
			c.at = h.next()
			continue
		}
		if r+size > len(raw) {
			return int64(size), false, nil
		}
		body := raw[r+h.headerLen() : r+size]
		if crc32.Checksum(body, castagnoli) != h.bodyCRC {
			bad := c.damage(errBodyCRC)
			bad.Pos += int64(r)
			return 0, false, bad
		}
		switch {
		case h.kind != KindEvents:
			if w > 0 {
				return 0, false, nil
			}
			page.Skipped++
			page.First = h.next()
		case w > 0 && w+len(body) > maxBytes:
			return 0, false, nil
		case c.next > h.base:
			part, err := wire.AppendFrom(nil, body, c.next)
			if err != nil {
				return 0, false, fmt.Errorf("seglog: enter the frame at offset %d: %w", h.base, err)
			}
			w += copy(raw[w:], part)
			page.Records++
		default:
			w += copy(raw[w:], body)
			page.Records++
		}
		r += size
		c.at, c.next = h.next(), h.next()
	}
}

// damage describes that no record could be read at the cursor's position.
func (c *Cursor) damage(reason error) *CorruptionError {
	if known := c.l.corrupt; known != nil && known.Segment == c.seg.base && known.Offset == c.at {
		bad := *known // what Open knows says more
		return &bad
	}
	text := reason.Error()
	if f := c.seg.following.Load(); f != nil && (errors.Is(reason, errNotRecord) || errors.Is(reason, errShort)) {
		text = fmt.Sprintf("it ends at offset %d but the next segment begins at %d", c.at, f.base)
	}
	return &CorruptionError{Segment: c.seg.base, Offset: c.at, Pos: c.pos, Reason: text}
}
