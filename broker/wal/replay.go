package wal

import "errors"

// findAgain looks for what is in the files of a journal that was used since Open. It
// is for a log that is opened again by its owner, which happens rarely.
func (l *Log) findAgain(j *Journal) ([]foundAt, error) {
	type part struct {
		f   *file
		end int64
	}
	var parts []part
	l.mu.Lock()
	for _, f := range l.files {
		if upTo, ok := f.pins[j]; ok && j.pins(upTo) { // so that it is not dropped meanwhile
			parts = append(parts, part{f, f.end.Load()})
		}
	}
	l.mu.Unlock()
	var found []foundAt
	for _, p := range parts {
		sc := &scanner{w: window{f: p.f.f, size: p.end}, path: p.f.path, seed: p.f.seed, pos: fileHeaderLen, next: p.f.first}
		ours := make(map[uint32]bool)
		for sc.pos < p.end {
			ok, err := sc.batch(func(r *record) error {
				switch {
				case r.kind == kindDeclare:
					ours[r.id] = r.typ == spaceJournal && string(r.data) == j.key
				case !ours[r.id]:
				case r.kind == kindJournal:
					found = append(found, foundAt{file: p.f, next: r.b, pos: uint32(r.pos), size: uint32(r.size)})
				case r.kind == kindForget, r.kind == kindDiscard:
					found = nil
				}
				return nil
			})
			if err != nil {
				if _, bad := errors.AsType[*CorruptionError](err); bad {
					return nil, err
				}
				return nil, l.wrap("read "+p.f.path, err)
			}
			if !ok {
				return nil, &CorruptionError{File: p.f.path, Pos: sc.pos, Reason: sc.reason}
			}
		}
	}
	return found, nil
}
