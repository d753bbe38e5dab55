package seglog

import (
	"path/filepath"
)

// removeLeftovers removes files that hold no records. That it can't is no reason
// not to open.
func (l *Log) removeLeftovers(ls *listing, rec *Recovery) {
	known := make(map[uint64]bool, len(ls.segments))
	for _, base := range ls.segments {
		known[base] = true
	}
	var names []string
	for _, base := range ls.indexes {
		if !known[base] {
			names = append(names, filepath.Base(l.path(base, indexSuffix)))
		}
	}
	for _, base := range ls.states {
		if !known[base] {
			names = append(names, filepath.Base(l.path(base, stateSuffix)))
		}
	}
	names = append(names, ls.temps...)
	for _, name := range names {
		if err := l.fs.Remove(filepath.Join(l.cfg.Dir, name)); err != nil {
			l.log.Debug("left-over file stays", "dir", l.cfg.Dir, "name", name, "err", err)
			continue
		}
		rec.Removed = append(rec.Removed, name)
	}
}
