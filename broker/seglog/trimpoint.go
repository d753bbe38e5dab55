package seglog

import "time"

// TrimPoint is the first offset that a retention of maxBytes and maxAge (0: no bound)
// keeps: the base of the oldest segment that stays. It removes nothing. The active
// segment always stays.
func (l *Log) TrimPoint(maxBytes int64, maxAge time.Duration) (uint64, error) {
	segs := *l.segs.Load()
	total := int64(0)
	for _, s := range segs {
		total += s.end.Load()
	}
	oldest := l.Oldest()
	for i := 0; i < len(segs)-1; i++ {
		expired := maxBytes > 0 && total > maxBytes
		if !expired && maxAge > 0 {
			newest, err := l.newestOf(segs[i])
			if err != nil {
				return oldest, err
			}
			expired = time.UnixMicro(newest).Before(l.cfg.Now().Add(-maxAge))
		}
		if !expired {
			break
		}
		total -= segs[i].end.Load()
		oldest = segs[i+1].base
	}
	return oldest, nil
}
