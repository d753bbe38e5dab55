package wal

// TruncateFrom removes the entries from index on, durable when it returns nil.
func (e *Entries) TruncateFrom(index uint64) error {
	e.writing.Lock()
	defer e.writing.Unlock()
	if last := e.last.Load(); last == 0 || index > last {
		return nil
	}
	if err := e.mark(kindTruncateFrom, index); err != nil {
		return err
	}
	e.l.mu.Lock()
	defer e.l.mu.Unlock()
	e.removeFromLocked(index)
	return nil
}

// TruncateTo removes the entries below index, durable when it returns nil.
func (e *Entries) TruncateTo(index uint64) error {
	e.writing.Lock()
	defer e.writing.Unlock()
	if first := e.first.Load(); first == 0 || index <= first {
		return nil
	}
	if err := e.mark(kindTruncateTo, index); err != nil {
		return err
	}
	e.removeTo(index)
	wake(e.l.work)
	return nil
}

// Forget removes everything and ends the store, durable when it returns nil.
func (e *Entries) Forget() error {
	e.writing.Lock()
	defer e.writing.Unlock()
	if err := e.mark(kindForget, 0); err != nil {
		if e.isForgotten() {
			return nil
		}
		return err
	}
	e.l.mu.Lock()
	e.l.forgetLocked(e)
	e.l.mu.Unlock()
	e.removeTo(e.last.Load() + 1)
	wake(e.l.work)
	return nil
}

func (e *Entries) isForgotten() bool {
	e.l.mu.Lock()
	defer e.l.mu.Unlock()
	return e.forgotten
}

// mark makes the record of a removal durable.
func (e *Entries) mark(k kind, bound uint64) error {
	b, err := e.l.begin(e, boundRecordLen)
	if err != nil {
		return err
	}
	if k == kindForget {
		b.buf = appendPrefix(b.buf, k, 0, e.id)
	} else {
		b.buf = appendBound(b.buf, k, e.id, bound)
	}
	e.l.end(b, 1, waiter{owner: e, result: e.result})
	return (<-e.result).err
}

// removeFromLocked is with Log.mu held, because files are needed for less afterwards.
func (e *Entries) removeFromLocked(index uint64) {
	e.l.lowerPinsLocked(e, index)
	e.mu.Lock()
	defer e.mu.Unlock()
	first, last := e.first.Load(), e.last.Load()
	if last == 0 || index > last {
		return
	}
	e.cache.removeFrom(index, last)
	if index <= first {
		e.refs = nil
		e.first.Store(0)
		e.last.Store(0)
		return
	}
	clear(e.refs[index-first:])
	e.refs = e.refs[:index-first]
	e.last.Store(index - 1)
}

func (e *Entries) removeTo(index uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	first, last := e.first.Load(), e.last.Load()
	if last == 0 || index <= first {
		return
	}
	if index > last {
		e.cache.removeFrom(0, last)
		e.refs = nil
		e.first.Store(0)
		e.last.Store(0)
		return
	}
	e.cache.removeTo(index, last)
	gone := index - first
	clear(e.refs[:gone])
	e.refs = e.refs[gone:] // the next append that needs room copies what is left
	e.first.Store(index)
}
