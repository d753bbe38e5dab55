package quorum

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"

	"github.com/hashicorp/raft"

	"felix.dev/felix/broker/vfs"
)

// snapStore is a group's raft.SnapshotStore. It keeps the newest snapshot only, in one
// file. One that is being installed counts, and gets its file, when the machine has
// restored it: until then a restart goes on from the one before.
type snapStore struct {
	g   *Group
	fs  vfs.FS
	dir string
	// taken is told of each new newest one.
	taken func(index, term uint64)

	publishing sync.Mutex // one publish at a time; disk I/O; before mu

	mu       sync.Mutex
	newest   *raft.SnapshotMeta // nil: none
	arriving *arriving          // nil: none
}

// arriving is a snapshot that is being installed.
type arriving struct {
	meta     *raft.SnapshotMeta
	manifest []byte
}

var (
	_ raft.SnapshotStore = (*snapStore)(nil)
	_ raft.SnapshotSink  = (*snapSink)(nil)
)

// List implements raft.SnapshotStore, as do Open and Create.
func (s *snapStore) List() ([]*raft.SnapshotMeta, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.newest == nil {
		return nil, nil
	}
	m := *s.newest
	return []*raft.SnapshotMeta{&m}, nil
}

// Open gives a manifest.
func (s *snapStore) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	s.mu.Lock()
	a := s.arriving
	s.mu.Unlock()
	if a != nil && a.meta.ID == id {
		m := *a.meta
		return &m, io.NopCloser(bytes.NewReader(a.manifest)), nil
	}
	b, err := vfs.ReadFile(s.fs, filepath.Join(s.dir, id))
	if err != nil {
		return nil, nil, fmt.Errorf("quorum: group %d: snapshot: %w", s.g.id, err)
	}
	h, manifest, err := decodeSnap(b)
	if err != nil {
		return nil, nil, fmt.Errorf("quorum: group %d: snapshot %s: %w", s.g.id, id, err)
	}
	return h.meta(int64(len(manifest))), io.NopCloser(bytes.NewReader(manifest)), nil
}

// Create begins a snapshot, be it of this server's machine or one that a leader sends.
func (s *snapStore) Create(_ raft.SnapshotVersion, index, term uint64, configuration raft.Configuration,
	configurationIndex uint64, _ raft.Transport,
) (raft.SnapshotSink, error) {
	m := &raft.SnapshotMeta{
		Version: raft.SnapshotVersionMax, ID: snapName(index, term), Index: index, Term: term,
		Configuration: configuration, ConfigurationIndex: configurationIndex,
	}
	return &snapSink{s: s, meta: m}, nil
}

// snapSink collects a manifest.
type snapSink struct {
	s    *snapStore
	meta *raft.SnapshotMeta
	buf  bytes.Buffer
	own  bool // it is of this server's machine, which has all of it
}

var errManifest = fmt.Errorf("quorum: manifest above %d bytes", maxManifestBytes)

// Write implements io.Writer.
func (k *snapSink) Write(p []byte) (int, error) {
	if k.buf.Len()+len(p) > maxManifestBytes {
		return 0, errManifest
	}
	return k.buf.Write(p)
}

// ID implements raft.SnapshotSink, as do Close and Cancel.
func (k *snapSink) ID() string { return k.meta.ID }

// Cancel drops the snapshot.
func (k *snapSink) Cancel() error { return nil }

// Close makes one's own snapshot the newest, and has one that was sent wait for its machine.
func (k *snapSink) Close() error {
	k.meta.Size = int64(k.buf.Len())
	if k.own {
		return k.s.publish(k.meta, k.buf.Bytes())
	}
	k.s.mu.Lock()
	defer k.s.mu.Unlock()
	k.s.arriving = &arriving{meta: k.meta, manifest: k.buf.Bytes()}
	return nil
}

// restored makes the arriving snapshot the newest.
func (s *snapStore) restored() error {
	s.mu.Lock()
	a := s.arriving
	s.mu.Unlock()
	if a == nil {
		return errors.New("quorum: no snapshot is being installed")
	}
	if err := s.publish(a.meta, a.manifest); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.arriving = nil
	return nil
}

// coming is the index and manifest of the snapshot that is being installed.
func (s *snapStore) coming() (uint64, []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.arriving == nil {
		return 0, nil
	}
	return s.arriving.meta.Index, s.arriving.manifest
}

// errOvertaken is for one's own snapshot that took longer than a newer one took to be
// installed: raft, which is told so, and the log would go back to it.
var errOvertaken = errors.New("quorum: a newer snapshot is there")

func (s *snapStore) publish(m *raft.SnapshotMeta, manifest []byte) error {
	s.publishing.Lock()
	defer s.publishing.Unlock()
	s.mu.Lock()
	overtaken := s.newest != nil && s.newest.Index > m.Index
	s.mu.Unlock()
	if overtaken {
		return fmt.Errorf("%w: group %d, up to entry %d", errOvertaken, s.g.id, m.Index)
	}
	b, err := encodeSnap(headOf(m), manifest)
	if err != nil {
		return fmt.Errorf("quorum: group %d: snapshot: %w", s.g.id, err)
	}
	if err := vfs.WriteFileAtomic(s.fs, filepath.Join(s.dir, m.ID), b, 0o600); err != nil {
		return fmt.Errorf("quorum: group %d: snapshot: %w", s.g.id, err)
	}
	s.mu.Lock()
	before := s.newest
	s.newest = m
	s.mu.Unlock()
	if before != nil && before.ID != m.ID {
		_ = s.fs.Remove(filepath.Join(s.dir, before.ID)) // Open removes what is left
	}
	s.taken(m.Index, m.Term)
	return nil
}
