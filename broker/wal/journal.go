package wal

import (
	"fmt"
	"time"
)

// Journal holds the bytes of one log that its own file does not hold durably yet.
// One goroutine at a time appends; the rest may be called from any.
type Journal struct {
	stream

	// Guarded by Log.mu.
	released uint64
	top      uint64    // highest offset written since the last Discard
	found    []foundAt // what recovery found, until something is appended or released
	live     bool      // something was: Replay has to read the files
}

// foundAt is where a journal's bytes are.
type foundAt struct {
	file *file
	next uint64
	pos  uint32
	size uint32
}

func (j *Journal) pins(upTo uint64) bool { return !j.forgotten && upTo > j.released }

// Append writes the bytes of [from, next). It copies data, and returns before they
// are durable; done is called once, with both, in the order of the appends of this
// journal, from the committer's goroutine: it must not block. It waits only while a
// whole batch waits already. It returns false, and has done nothing, if its log should
// flush its own file instead: because nobody else appends at the moment, or because
// this one cannot take it.
func (j *Journal) Append(from, next uint64, data []byte, done func(from, next uint64, err error)) bool {
	l := j.l
	if next <= from || !l.shared(&j.stream) {
		return false
	}
	b, err := l.begin(j, journalHeaderLen+len(data))
	if err != nil {
		return false
	}
	b.buf = appendJournal(b.buf, j.id, from, next, data)
	j.top = max(j.top, next)
	j.live, j.found = true, nil
	l.appends.Add(1)
	l.appended.Add(int64(len(data)))
	l.end(b, 1, waiter{owner: j, from: from, upTo: next, done: done})
	return true
}

// shared notes who appends, and says whether others do.
func (l *Log) shared(s *stream) bool {
	now := int64(time.Since(l.start)) + 1
	if last := l.lastUser.Load(); last != s {
		if l.lastUser.Swap(s) != nil {
			l.lastSwitch.Store(now)
		}
	}
	if l.cfg.Alone < 0 {
		return true
	}
	at := l.lastSwitch.Load()
	return at != 0 && now-at < int64(l.cfg.Alone)
}

// Release says that everything below upTo is safe elsewhere. It does not wait.
func (j *Journal) Release(upTo uint64) {
	l := j.l
	l.mu.Lock()
	defer l.mu.Unlock()
	if upTo <= j.released || j.forgotten {
		return
	}
	held := j.top > j.released
	j.released = upTo
	if !held {
		return
	}
	j.live, j.found = true, nil
	l.noteLocked(&j.stream, kindRelease, upTo)
	if len(l.files) > 1 {
		wake(l.work)
	}
}

// Discard says that nothing that was appended so far is needed any more, whatever its
// offsets: they may be used again. That is durable when it returns nil. No append may
// be under way.
func (j *Journal) Discard() error {
	l := j.l
	b, err := l.begin(j, prefixLen)
	if err != nil {
		return err
	}
	result := make(chan outcome, 1)
	b.buf = appendPrefix(b.buf, kindDiscard, 0, j.id)
	l.end(b, 1, waiter{owner: j, result: result})
	if o := <-result; o.err != nil {
		return o.err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	j.discardLocked()
	j.live = true
	wake(l.work)
	return nil
}

func (j *Journal) discardLocked() {
	j.top, j.released, j.found = 0, 0, nil
	for _, f := range j.l.files {
		delete(f.pins, j)
	}
}

// Forget releases everything and ends the journal. It does not wait: after a crash
// the key may be found once more.
func (j *Journal) Forget() {
	l := j.l
	l.mu.Lock()
	defer l.mu.Unlock()
	if j.forgotten {
		return
	}
	if j.top > j.released {
		l.noteLocked(&j.stream, kindForget, 0)
	}
	l.forgetLocked(j)
	j.found = nil
	wake(l.work)
}

// Replay calls f with every append that is durable and not released, in the order in
// which they were made. The journal must not be used meanwhile. It stops at the first
// error of f.
func (j *Journal) Replay(f func(from, next uint64, data []byte) error) error {
	l := j.l
	l.mu.Lock()
	live, released := j.live, j.released
	var found []foundAt
	for _, at := range j.found {
		if j.pins(at.file.pins[j]) { // otherwise the file may be dropped at any moment
			found = append(found, at)
		}
	}
	l.mu.Unlock()
	if live {
		var err error
		if found, err = l.findAgain(j); err != nil {
			return err
		}
	}
	var buf []byte
	for _, at := range found {
		if cap(buf) < int(at.size) {
			buf = make([]byte, at.size)
		}
		b := buf[:at.size]
		if n, err := at.file.f.ReadAt(b, int64(at.pos)); n < len(b) {
			return l.wrap("read "+at.file.path, err)
		}
		var r record
		if err := parseRecord(b, &r); err != nil || r.kind != kindJournal {
			return &CorruptionError{File: at.file.path, Pos: int64(at.pos), Reason: fmt.Sprintf("no journal record: %v", err)}
		}
		if r.b <= released {
			continue
		}
		if err := f(r.a, r.b, r.data); err != nil {
			return err
		}
	}
	return nil
}
