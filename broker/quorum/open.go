package quorum

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"strconv"
	"time"

	"github.com/hashicorp/raft"

	"felix.dev/felix/broker/vfs"
)

const (
	stableFile = "stable.bolt"
	// never is how often raft looks for a reason to take a snapshot: the node does that.
	never = 365 * 24 * time.Hour
)

func (n *Node) groupDir(id uint32) string {
	return filepath.Join(n.cfg.Dir, "g"+strconv.FormatUint(uint64(id), 10))
}

// Open opens this server's replica of a group, or makes an empty one. Damage is a *DamagedError.
func (n *Node) Open(ctx context.Context, id uint32, cfg GroupConfig) (*Group, error) {
	if err := n.claim(id); err != nil {
		return nil, err
	}
	g, err := n.openGroup(ctx, id, cfg)
	n.mu.Lock()
	defer n.mu.Unlock()
	if err != nil {
		delete(n.groups, id)
		return nil, err
	}
	n.groups[id] = g
	return g, nil
}

// claim has nobody else open or remove a group.
func (n *Node) claim(id uint32) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return ErrClosed
	}
	if _, taken := n.groups[id]; taken {
		return fmt.Errorf("%w: %d", ErrExists, id)
	}
	n.groups[id] = nil
	return nil
}

func (n *Node) openGroup(ctx context.Context, id uint32, cfg GroupConfig) (_ *Group, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for _, s := range cfg.Bootstrap {
		if err := s.Validate(); err != nil {
			return nil, err
		}
	}
	g := &Group{
		n: n, id: id, cfg: cfg, slg: n.cfg.Log.With("group", id),
		members: make(chan struct{}, 1), closing: make(chan struct{}), ended: make(chan struct{}), closed: make(chan struct{}),
	}
	g.watch = &watch{g: g}
	g.asked = newProposals(g)
	g.leader = newLeadership(g)
	g.announcer = newAnnouncer(g)
	g.trans = newTransport(g)
	g.inbox = newInbox(g)
	manifest, err := g.openStores()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.stable.store.Close())
		}
	}()
	if err := cfg.Machine.Recover(manifest); err != nil {
		return nil, fmt.Errorf("quorum: group %d: recover machine: %w", id, err)
	}
	if err := g.startRaft(); err != nil {
		return nil, err
	}
	g.running.Go(g.asked.loop)
	g.running.Go(g.leader.loop)
	g.running.Go(g.inbox.loop)
	g.running.Go(g.announcer.loop)
	return g, nil
}

// openStores opens the state store, the snapshot and the log, and checks that they
// belong together.
func (g *Group) openStores() (manifest []byte, err error) {
	fsys, dir := g.n.cfg.FS, g.n.groupDir(g.id)
	if err := vfs.MkdirAllSync(fsys, dir, 0o700); err != nil {
		return nil, fmt.Errorf("quorum: group %d: %w", g.id, err)
	}
	newest, manifest, path, err := readSnaps(fsys, dir)
	switch {
	case errors.Is(err, errSnap):
		return nil, g.damaged(path, "snapshot", err)
	case err != nil:
		return nil, fmt.Errorf("quorum: group %d: snapshot: %w", g.id, err)
	}
	var base, baseTerm uint64
	if newest != nil {
		base, baseTerm = newest.Index, newest.Term
	}
	store, err := g.n.entriesOf(logKey(g.id))
	if err != nil {
		return nil, fmt.Errorf("quorum: group %d: log: %w", g.id, err)
	}
	if g.log, err = openLog(g, store, base, baseTerm); err != nil {
		return nil, err
	}
	if g.stable, err = g.openState(filepath.Join(dir, stableFile), base > 0 || store.Last() > 0); err != nil {
		return nil, err
	}
	g.snaps = &snapStore{g: g, fs: fsys, dir: dir, taken: g.log.snapshotAt, newest: newest}
	if m := g.n.cfg.Metrics.Stored; m != nil {
		g.log.stored = func(n, bytes int, took time.Duration, err error) { m(g.id, n, bytes, took, err) }
	}
	g.fsm = &fsm{g: g, machine: g.cfg.Machine}
	g.fsm.applied.Store(base)
	return manifest, nil
}

// openState opens the state store. It must be there if anything else is: without it
// this server may have forgotten whom it voted for.
func (g *Group) openState(path string, other bool) (*stableStore, error) {
	_, err := g.n.cfg.FS.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && other:
		return nil, g.damaged(path, "it is missing", nil)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("quorum: group %d: %w", g.id, err)
	}
	store, err := g.n.cfg.State(path)
	if err != nil {
		return nil, g.damaged(path, "state store", err)
	}
	s, err := openStable(g, store, path)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	if other && s.cached[keyTerm] == nil {
		return nil, errors.Join(g.damaged(path, "it has no term, although there are entries", nil), store.Close())
	}
	return s, nil
}

func (g *Group) startRaft() (err error) {
	defer func() { // raft panics at a log that it cannot read
		if p := recover(); p != nil {
			err = g.damaged("the write-ahead log", fmt.Sprint(p), nil)
		}
	}()
	t := g.n.cfg.Timings
	c := raft.DefaultConfig()
	c.LocalID = raft.ServerID(g.n.self)
	c.HeartbeatTimeout, c.ElectionTimeout, c.CommitTimeout = t.Heartbeat, t.Election, t.Commit
	c.LeaderLeaseTimeout = min(t.Lease, t.impatient())
	c.MaxAppendEntries, c.BatchApplyCh = maxAppend, true
	c.SnapshotInterval, c.SnapshotThreshold, c.TrailingLogs = never, math.MaxUint64, 1 // see logStore.compact
	c.ShutdownOnRemove = false
	c.NoSnapshotRestoreOnStart, c.NoLegacyTelemetry = true, true
	c.NotifyCh = g.leader.changes
	c.Logger = &raftLog{log: g.slg}
	if err := g.bootstrap(); err != nil {
		return fmt.Errorf("quorum: group %d: bootstrap: %w", g.id, err)
	}
	if g.raft, err = raft.NewRaft(c, g.fsm, g.log, g.stable, g.snaps, g.trans); err != nil {
		return fmt.Errorf("quorum: group %d: %w", g.id, err)
	}
	return nil
}

// bootstrap writes the first entry, which names the first voters, unless this server
// knows of any. It may have been interrupted before.
func (g *Group) bootstrap() error {
	if len(g.cfg.Bootstrap) == 0 || g.log.store.Last() > 0 || g.log.baseIndex > 0 || !g.stable.fresh() {
		return nil
	}
	var c raft.Configuration
	for _, s := range g.cfg.Bootstrap {
		c.Servers = append(c.Servers, raft.Server{ID: raft.ServerID(s.String()), Address: raft.ServerAddress(s.String())})
	}
	if err := g.stable.SetUint64([]byte(keyTerm), 1); err != nil {
		return err
	}
	return g.log.StoreLog(&raft.Log{Index: 1, Term: 1, Type: raft.LogConfiguration, Data: raft.EncodeConfiguration(c)})
}
