package seglog

import (
	"fmt"
	"time"
)

// Verdict is what an inspection comes to.
type Verdict uint8

const (
	// VerdictClean says that Open has nothing to repair.
	VerdictClean Verdict = iota
	// VerdictRepairable says that Open repairs it without losing what was committed.
	VerdictRepairable
	// VerdictRefused says that Open refuses the log, or opens it for reading only.
	VerdictRefused
)

func (v Verdict) String() string {
	switch v {
	case VerdictClean:
		return "clean"
	case VerdictRepairable:
		return "repairable"
	case VerdictRefused:
		return "refused"
	}
	return fmt.Sprintf("verdict %d", uint8(v))
}

// Report is what Inspect found.
type Report struct {
	Dir         string
	Verdict     Verdict
	Incarnation [16]byte
	Oldest      uint64
	Next        uint64 // of what can be read
	Records     uint64
	Bytes       int64 // of records and headers, not of zeros ahead of use
	Segments    []SegmentReport
	Problem     *Problem // the first; nil if there is none
	Notes       []string // what is odd but harmless: left-over files and the like
}

// SegmentReport describes one segment.
type SegmentReport struct {
	Base, Next     uint64
	Records        uint64
	Hidden         uint64 // of them: records that are never delivered
	Bytes          int64  // up to the end of the last record
	FileBytes      int64
	Oldest, Newest time.Time // of its records; zero if it has none
	IndexOK        bool      // it has a good index; the active segment needs none
	StateOK        bool      // it has a good owner's state; the first segment never has one
	Problem        *Problem
}

// Problem is where a log can't be read on, and why.
type Problem struct {
	Segment uint64 // base offset
	Pos     int64
	Offset  uint64
	Reason  string
	Torn    bool // a torn tail, which Open cuts; otherwise damage
}

func (p *Problem) String() string {
	what := "damaged"
	if p.Torn {
		what = "torn"
	}
	return fmt.Sprintf("segment %s %s at byte %d (offset %d): %s", segmentName(p.Segment), what, p.Pos, p.Offset, p.Reason)
}
