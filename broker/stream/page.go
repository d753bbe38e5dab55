package stream

import (
	"errors"
	"sync"

	"felix.dev/felix/broker/seglog"
)

// pages are the buffers of readers of history. A reader holds one only while it is
// behind; larger ones, for a frame that is larger, are not kept.
var pages sync.Pool

const (
	keptPage = 512 << 10
	keptConv = 64 << 10 // of a reader that waits; a piece is smaller
)

// readPage reads the next page of history. It says failed with the status to give
// when there is none.
func (s *Subscription) readPage(mark uint64, pageBytes int) (Status, bool) {
	if s.shard.log == nil { // the ring was all there was
		if _, ok := s.shard.tail.oldest(); ok {
			s.lose()
		} else { // as the mark was looked at before, what is below it is hidden
			s.pass(mark)
		}
		return 0, false
	}
	if s.page == nil {
		if b, ok := pages.Get().(*[]byte); ok {
			s.page = *b
		}
	}
	if s.log == nil {
		s.log = s.shard.log.Reader(s.next.Load())
	}
	s.log.Seek(s.next.Load())
	p, err := s.log.Read(mark, pageBytes, s.page)
	if err != nil {
		var old *seglog.TooOldError
		var bad *seglog.CorruptionError
		switch {
		case errors.As(err, &old):
			return s.ended(EndTooOld, err), true
		case errors.As(err, &bad):
			s.shard.damaged.Store(&damage{s.next.Load(), err})
			if r := s.shard.rep; r != nil && r.Damaged != nil {
				r.Damaged(err)
			}
			return s.ended(EndCorrupt, err), true
		case errors.Is(err, seglog.ErrClosed):
			return s.ended(EndShutdown, err), true
		}
		return s.ended(EndFailed, err), true
	}
	if p.Need > 0 {
		s.pass(p.Next)
		s.need = p.Need
		return 0, false
	}
	if len(p.Frames) == 0 {
		if p.Next <= s.next.Load() {
			return s.ended(EndFailed, errEmptyPage), true
		}
		s.pass(p.Next)
		return 0, false
	}
	s.page, s.rest = p.Frames, p.Frames
	return 0, false
}

var errEmptyPage = errors.New("stream: the log gave an empty page below the committed mark")

// dropLarge gives up the memory that a large frame took, once that is written.
func (s *Subscription) dropLarge() {
	if len(s.rest) == 0 && cap(s.page) > keptPage {
		s.page, s.rest = nil, nil
	}
	if cap(s.conv) > keptPage {
		s.conv = nil
	}
}

// HoldsLarge says whether the memory that Need told of is still in use.
func (s *Subscription) HoldsLarge() bool { return cap(s.page) > keptPage || cap(s.conv) > keptPage }

func (s *Subscription) releasePage() {
	if s.page == nil {
		return
	}
	if cap(s.page) <= keptPage {
		b := s.page[:0]
		pages.Put(&b)
	}
	s.page, s.rest = nil, nil
}
