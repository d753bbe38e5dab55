package quorum

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// fsm gives a group's machine what raft has committed. Its methods are called by one
// goroutine, but for persisting a snapshot.
type fsm struct {
	g       *Group
	machine Machine
	applied atomic.Uint64
	from    atomic.Pointer[Server] // who sent the snapshot that is being installed
	busy    atomic.Bool            // it is being restored
}

var (
	_ raft.FSM                = (*fsm)(nil)
	_ raft.ConfigurationStore = (*fsm)(nil)
)

// Apply applies a committed entry, whose data may still be in the log. It returns
// errDropped for one that raft repeats, or that comes while the group closes.
func (f *fsm) Apply(l *raft.Log) any {
	if l.Index <= f.applied.Load() {
		return errDropped
	}
	data, ok := f.data(l)
	if !ok {
		return errDropped
	}
	stop := f.g.watch.begin(watchMachine)
	result := f.machine.Apply(l.Index, l.Term, data)
	stop(nil)
	f.applied.Store(l.Index)
	f.g.announcer.applied()
	return result
}

var errDropped = errors.New("quorum: entry dropped")

// data loads an entry's data. As long as the disk does not give it, it waits: the
// entry is committed, and there is no going on without it.
func (f *fsm) data(l *raft.Log) ([]byte, bool) {
	for {
		select {
		case <-f.g.closing:
			return nil, false
		default:
		}
		if len(l.Data) > 0 {
			return l.Data, true
		}
		data, err := f.g.log.load(l.Index, l.Term)
		if err == nil {
			return data, true
		}
		f.g.watch.begin(watchLog)(err)
		select {
		case <-f.g.closing:
			return nil, false
		case <-time.After(retryAfter):
		}
	}
}

// StoreConfiguration is told of committed members. It also has raft count their entry
// as applied, without which no snapshot is taken while only members change.
func (f *fsm) StoreConfiguration(index uint64, c raft.Configuration) {
	f.applied.Store(max(index, f.applied.Load()))
	f.g.trans.progress.keep(c)
	f.g.announcer.applied()
}

// Snapshot implements raft.FSM, as does Restore.
func (f *fsm) Snapshot() (raft.FSMSnapshot, error) {
	select {
	case <-f.g.closing:
		return nil, ErrClosed // what was dropped is missing
	default:
	}
	s, err := f.machine.Snapshot()
	if err != nil {
		return nil, err
	}
	return frozen{s}, nil
}

// Restore has the machine take over the snapshot that is being installed.
func (f *fsm) Restore(manifest io.ReadCloser) error {
	defer func() { _ = manifest.Close() }() // it is in memory
	index, data := f.g.snaps.coming()
	from := f.from.Load()
	if index == 0 || from == nil {
		return errors.New("quorum: no snapshot is being installed")
	}
	f.busy.Store(true)
	defer f.busy.Store(false)
	if index > f.applied.Load() {
		if err := f.machine.Restore(index, data, *from); err != nil {
			return fmt.Errorf("quorum: group %d: restore from %s up to entry %d: %w", f.g.id, from, index, err)
		}
		f.applied.Store(index)
	}
	return f.g.snaps.restored()
}

// frozen is a machine's snapshot, a raft.FSMSnapshot.
type frozen struct{ Snapshot }

// Persist implements raft.FSMSnapshot.
func (z frozen) Persist(sink raft.SnapshotSink) error {
	manifest, err := z.Snapshot.Persist()
	if err != nil {
		return err
	}
	if own, ok := sink.(*snapSink); ok {
		own.own = true
	}
	_, err = sink.Write(manifest)
	return err
}
