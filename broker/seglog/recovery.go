package seglog

// Recovery says what Open found and did.
type Recovery struct {
	Oldest, Next uint64
	Segments     int
	Scanned      uint64   // records read and checked
	Cut          *Cut     // the torn tail; nil: there was none
	Journaled    uint64   // records that only the journal still had
	Removed      []string // left-over files without records, removed
	// StateFrom is the offset that the restored state belongs to. StateLost says
	// that there was none although records before the oldest kept one are gone, so
	// that OnRecover has not seen everything the owner once knew.
	StateFrom uint64
	StateLost bool
	// Corruption is the damage that was found. The log can be read up to it, and
	// behind it if it is not in the last segment; appends are refused. Next is then
	// the end of what is known to have been written, so that a reader who gets there
	// is told.
	Corruption *CorruptionError
	// ReadOnly is why Append refuses for now; nil: it doesn't. It is Corruption, or
	// wraps ErrDiskFull, ErrReadOnly or ErrPoisoned.
	ReadOnly error
}

// Cut describes a torn tail: bytes that a crash left behind the last whole record.
// Nothing in them was ever committed under FsyncAlways.
type Cut struct {
	Segment uint64 // base offset
	Pos     int64  // where it began
	Offset  uint64 // first offset that is not there; the log goes on with it
	Bytes   int64  // up to the last byte that wasn't zero
	Reason  string // why no record could be read there
}

func (l *Log) logRecovery(rec *Recovery) {
	if rec.Cut != nil {
		l.log.Warn("torn tail cut", "dir", l.cfg.Dir, "segment", segmentName(rec.Cut.Segment),
			"pos", rec.Cut.Pos, "offset", rec.Cut.Offset, "bytes", rec.Cut.Bytes, "reason", rec.Cut.Reason)
	}
	if rec.Journaled > 0 {
		l.log.Info("records taken from the journal", "dir", l.cfg.Dir, "records", rec.Journaled, "next", l.next.Load())
	}
	if rec.StateLost {
		l.log.Warn("owner's state is lost, what the kept records say is all there is", "dir", l.cfg.Dir, "offset", rec.StateFrom)
	}
	if rec.ReadOnly != nil {
		l.log.Error("log opened for reading only", "dir", l.cfg.Dir, "err", rec.ReadOnly)
	}
}
