package quorum

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"felix.dev/felix/broker/peer"
	"felix.dev/felix/broker/vfs"
)

// Node is this broker's part in all groups that it is a member of. Its methods may be
// called from anywhere.
type Node struct {
	cfg    NodeConfig
	self   string
	dialer dialer
	// entriesOf opens a group's log.
	entriesOf func(key string) (entries, error)

	began  time.Time
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	heard  heard

	running sync.WaitGroup // goroutines of run
	serving sync.WaitGroup // connections that others opened

	mu     sync.Mutex
	groups map[uint32]*Group // open ones; nil while one is being opened or removed
	links  map[Server]*link
	conns  map[net.Conn]struct{}
	closed bool
}

// GroupConfig is one group.
type GroupConfig struct {
	Machine Machine
	// Bootstrap are the voters that the group begins with. It only counts while this
	// server holds nothing of the group; all of them may be given the same list. A server
	// that joins a group that exists is given none: the leader adds it.
	Bootstrap []Server
	// OnLeader is told of each change, in order, by one goroutine (nil: nobody is). It
	// must return soon. Use Group.Ready before serving.
	OnLeader func(Leadership)
}

// maxGroup bounds the ids of groups.
const maxGroup = 1<<32 - 1

// keyPrefix begins the keys of groups in the write-ahead log.
const keyPrefix = "raft/"

func logKey(id uint32) string { return keyPrefix + strconv.FormatUint(uint64(id), 10) }

// NewNode makes a node without groups. Removals that a crash interrupted are finished.
func NewNode(cfg NodeConfig) (*Node, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	log := cfg.WAL
	n := newNode(cfg, cfg.Peer, func(key string) (entries, error) { return log.Entries(key) })
	if err := n.start(); err != nil {
		return nil, err
	}
	cfg.Peer.Handle(peer.KindRaft, n.serve)
	return n, nil
}

func newNode(cfg NodeConfig, d dialer, entriesOf func(string) (entries, error)) *Node {
	cfg.setDefaults()
	n := &Node{
		cfg: cfg, self: cfg.Self.String(), dialer: d, entriesOf: entriesOf, began: time.Now(),
		heard:  heard{open: map[heardOn]*inbound{}, lost: map[Server]time.Time{}},
		groups: map[uint32]*Group{}, links: map[Server]*link{}, conns: map[net.Conn]struct{}{},
	}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	return n
}

func (n *Node) start() error {
	if err := vfs.MkdirAllSync(n.cfg.FS, n.cfg.Dir, 0o700); err != nil {
		return fmt.Errorf("quorum: %w", err)
	}
	if err := n.finishRemovals(); err != nil {
		return err
	}
	n.run(n.tick)
	return nil
}

// run starts a goroutine that Close waits for. It returns false when the node has closed.
func (n *Node) run(f func()) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return false
	}
	n.running.Go(f)
	return true
}

func (n *Node) random(below time.Duration) time.Duration {
	return rand.N(max(below, 1)) //nolint:gosec // it only has to differ from that of others
}

// Group is the open group with this id, or nil.
func (n *Node) Group(id uint32) *Group {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.groups[id]
}

func (n *Node) list() []*Group {
	n.mu.Lock()
	defer n.mu.Unlock()
	list := make([]*Group, 0, len(n.groups))
	for _, g := range n.groups {
		if g != nil {
			list = append(list, g)
		}
	}
	return list
}

// tick looks after all groups: what hangs, whose leader is silent, which proposals are
// late, who has grown enough for a snapshot, and who may remove entries at last.
func (n *Node) tick() {
	for n.untilTick() {
		now := time.Now()
		for _, g := range n.list() {
			g.watch.check(now)
			g.lookAround(now)
			g.asked.giveUp(now.Add(-n.cfg.ProposeTimeout))
			entries, bytes := g.log.grown()
			if entries >= n.cfg.SnapshotEntries || bytes >= n.cfg.SnapshotBytes {
				g.snapshotSoon()
			} else if g.log.overdue(now) {
				g.compactSoon()
			}
		}
	}
}

// Pressure is for wal.Config.Pressure: groups among the keys take a snapshot, so that
// the log can drop files. It does not wait for them.
func (n *Node) Pressure(keys []string) {
	for _, key := range keys {
		text, ours := strings.CutPrefix(key, keyPrefix)
		id, err := strconv.ParseUint(text, 10, 32)
		if !ours || err != nil {
			continue
		}
		if g := n.Group(uint32(id)); g != nil {
			g.pressed()
		}
	}
}

// Close gives leaderships away and closes every group. When ctx ends first, what is
// stuck is left to end by itself, and the error says so.
func (n *Node) Close(ctx context.Context) error {
	var mu sync.Mutex
	var errs []error
	var closing sync.WaitGroup
	for _, g := range n.list() {
		closing.Go(func() {
			if err := g.Close(ctx); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
		})
	}
	closing.Wait()
	n.mu.Lock()
	n.closed = true
	links := make([]*link, 0, len(n.links))
	for _, l := range n.links {
		links = append(links, l)
	}
	for c := range n.conns {
		_ = c.Close() // its reader ends
	}
	n.mu.Unlock()
	n.cancel()
	for _, l := range links {
		l.close()
	}
	ended := make(chan struct{})
	go func() {
		n.running.Wait()
		n.serving.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		errs = append(errs, fmt.Errorf("quorum: some of the node still waits for its storage: %w", ctx.Err()))
	}
	return errors.Join(errs...)
}
