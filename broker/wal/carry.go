package wal

// Carry writes what the journal holds once more, at the end of the log, so that it does
// not keep old files. It is for a journal whose log cannot take its bytes, because it
// is damaged or was not opened: nothing may be appended meanwhile.
func (j *Journal) Carry() error {
	l := j.l
	l.mu.Lock()
	end := uint64(0)
	if n := len(l.files); n > 0 {
		end = l.files[n-1].number
	}
	l.mu.Unlock()
	result := make(chan outcome, 1)
	err := j.Replay(func(from, next uint64, data []byte) error {
		b, err := l.begin(j, journalHeaderLen+len(data))
		if err != nil {
			return err
		}
		b.buf = appendJournal(b.buf, j.id, from, next, data)
		l.end(b, 1, waiter{owner: j, upTo: next, result: result})
		return (<-result).err
	})
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	j.live, j.found = true, nil
	for _, f := range l.files {
		if f.number < end {
			delete(f.pins, j)
		}
	}
	wake(l.work)
	return nil
}
