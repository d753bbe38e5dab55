package stream

import (
	"felix.dev/felix/broker/wire"
)

// Piece is what a reader writes next: whole frames, in one Write. Bytes are shared
// and valid until Next is called again.
type Piece struct {
	Bytes   []byte
	Next    uint64 // offset after it
	Records int

	size    int // in the source, which may have another shape
	entries int
}

// piece cuts whole frames below the mark off b, which starts at the cursor.
func (s *Subscription) piece(b []byte, mark uint64, maxBytes int) (Piece, bool) {
	first, err := wire.PeekOffsetFrame(b)
	if err != nil {
		s.ended(EndFailed, err)
		return Piece{}, false
	}
	next := s.next.Load()
	if first.Base > next {
		s.pass(first.Base)
	}
	if !s.owed(1, first.Size) {
		s.lose()
		return Piece{}, false
	}
	alone := s.into || (s.skip > 0 && s.opts.Skips && s.opts.Offsets)
	if (alone || !s.opts.Offsets) && s.wants(first.Size) {
		return Piece{}, false
	}
	if alone {
		return s.alone(b[:first.Size], first)
	}
	p := Piece{size: first.Size, entries: 1, Records: int(first.Count), Next: first.Base + uint64(first.Count)}
	for p.size < len(b) && p.Next < mark {
		f, err := wire.PeekOffsetFrame(b[p.size:])
		if err != nil || p.size+f.Size > maxBytes || f.Base != p.Next || !s.owed(p.entries+1, p.size+f.Size) {
			break
		}
		p.size += f.Size
		p.entries++
		p.Records += int(f.Count)
		p.Next += uint64(f.Count)
	}
	p.Bytes = b[:p.size]
	if !s.opts.Offsets {
		p.Bytes = s.plain(p.Bytes)
	}
	return p, true
}

// wants says that a copy of a frame needs more memory than the reader may take.
func (s *Subscription) wants(size int) bool {
	if size <= largePiece {
		return false
	}
	if len(s.rest) > 0 { // beside the page
		size += cap(s.page)
	}
	if size <= s.own {
		return false
	}
	s.need = size
	return true
}

// alone is a piece of one frame that cannot go out as it stands: it is entered in
// its middle, or it reports hidden offsets.
func (s *Subscription) alone(frame []byte, f wire.FrameInfo) (Piece, bool) {
	p := Piece{size: len(frame), entries: 1, Next: f.Base + uint64(f.Count), Records: int(f.Count)}
	out := frame
	if s.into {
		cut, err := wire.AppendFrom(nil, frame, s.next.Load())
		if err != nil {
			s.ended(EndFailed, err)
			return Piece{}, false
		}
		out, p.Records = cut, int(p.Next-s.next.Load())
	}
	switch {
	case !s.opts.Offsets:
		s.conv = wire.AppendAsPlain(s.conv[:0], out)
		out = s.conv
	case s.skip > 0 && s.opts.Skips:
		s.conv = wire.AppendWithSkip(s.conv[:0], out, s.skip)
		out = s.conv
	}
	p.Bytes = out
	return p, true
}

// plain converts frames for a client that reads no offsets.
func (s *Subscription) plain(frames []byte) []byte {
	s.conv = s.conv[:0]
	for len(frames) > 0 {
		f, err := wire.PeekOffsetFrame(frames)
		if err != nil {
			break
		}
		s.conv = wire.AppendAsPlain(s.conv, frames[:f.Size])
		frames = frames[f.Size:]
	}
	return s.conv
}
