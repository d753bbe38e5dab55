package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"sync"

	"felix.dev/felix/broker/quorum"
	"felix.dev/felix/broker/vfs"
)

// bookFile is where a broker writes down which cluster it belongs to.
const bookFile = "cluster.json"

// bookVersion is the version of that file's format.
const bookVersion = 1

// Book is what a broker remembers of its cluster from one start to the next: which
// one it is, and where the others were. It is there before the catalog is, so that
// the catalog's own group can find its members.
type Book struct {
	fs   vfs.FS
	path string

	writing sync.Mutex // one change of the file at a time

	mu       sync.Mutex          // guards what follows; never held while the disk is waited for
	page     page                // what is in the file
	heard    map[string]heardOf  // by node; newer than the file
	recorded map[string]position // by node, as the catalog last had it
}

// page is the file.
type page struct {
	Version  int    `json:"version"`
	Cluster  string `json:"cluster,omitempty"`
	Node     string `json:"node,omitempty"`
	Instance string `json:"instance,omitempty"`
	// Founding says that the cluster is being founded by this broker; Settled that
	// it has had the catalog, so that its part of the metadata group is there.
	Founding bool `json:"founding,omitempty"`
	Settled  bool `json:"settled,omitempty"`
	// Since is of the broker's last start.
	Since   int64               `json:"since,omitempty"`
	Brokers map[string]position `json:"brokers,omitempty"` // by node
}

// position is where a broker is.
type position struct {
	Instance string `json:"instance"`
	Peer     string `json:"peer"`
}

// heardOf is a position that a broker has told, or that somebody has heard from
// it. Since says which start of that broker it is of: a later one tells more.
type heardOf struct {
	position

	Since int64 `json:"since"`
}

// OpenBook reads a broker's book in a directory that exists. Without a file the
// broker belongs to no cluster.
func OpenBook(fsys vfs.FS, dir string) (*Book, error) {
	b := &Book{
		fs: fsys, path: filepath.Join(dir, bookFile), page: page{Version: bookVersion},
		heard: make(map[string]heardOf), recorded: make(map[string]position),
	}
	data, err := vfs.ReadFile(fsys, b.path)
	if errors.Is(err, fs.ErrNotExist) {
		return b, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cluster: read %s: %w", b.path, err)
	}
	var p page
	switch err := json.Unmarshal(data, &p); {
	case err != nil:
		return nil, refuse(CodeDamaged, "%s is damaged (%v): restore it from a copy, or remove this broker's whole data directory "+
			"to have it join as a new one", b.path, err)
	case p.Version > bookVersion:
		return nil, refuse(CodeVersion, "%s has format version %d, and this release reads up to %d: start a release that reads it",
			b.path, p.Version, bookVersion)
	case p.Cluster == "" || p.Node == "" || p.Instance == "":
		return nil, refuse(CodeDamaged, "%s names no cluster: restore it from a copy, or remove this broker's whole data directory "+
			"to have it join as a new one", b.path)
	}
	b.page = p
	return b, nil
}

// Cluster is the id of the cluster that the broker belongs to, or nothing. It is
// for peer.Config.
func (b *Book) Cluster() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.page.Cluster
}

// Resolve says where a node's peers reach it. It is for peer.Config.
func (b *Book) Resolve(node string) (addr string, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if h, ok := b.heard[node]; ok {
		return h.Peer, h.Peer != ""
	}
	p, ok := b.page.Brokers[node]
	return p.Peer, ok && p.Peer != ""
}

// owner is whose book it is; the zero Server if it belongs to no cluster.
func (b *Book) owner() quorum.Server {
	b.mu.Lock()
	defer b.mu.Unlock()
	return quorum.Server{Node: b.page.Node, Instance: b.page.Instance}
}

// founding says that this broker is founding the cluster that it belongs to.
func (b *Book) founding() bool { return b.written().Founding }

// settled says that this broker has had the catalog of its cluster.
func (b *Book) settled() bool { return b.written().Settled }

// begin returns a number for a start of the broker: the clock, or more if the clock
// was set back since the last start.
func (b *Book) begin(now int64) (int64, error) {
	b.writing.Lock()
	defer b.writing.Unlock()
	next := b.written()
	next.Since = max(now, next.Since+1)
	if next.Cluster == "" {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.page = next // it is written with the cluster
		return next.Since, nil
	}
	return next.Since, b.write(next)
}

// enter writes down that the broker belongs to a cluster. It does so once.
func (b *Book) enter(cluster string, self quorum.Server, founding bool) error {
	b.writing.Lock()
	defer b.writing.Unlock()
	next := b.written()
	next.Cluster, next.Node, next.Instance, next.Founding = cluster, self.Node, self.Instance, founding
	return b.write(next)
}

// settle writes down that the broker has the catalog.
func (b *Book) settle() error {
	b.writing.Lock()
	defer b.writing.Unlock()
	next := b.written()
	if next.Settled && !next.Founding {
		return nil
	}
	next.Settled, next.Founding = true, false
	return b.write(next)
}

// record takes the positions of a catalog. One that has not changed since the
// last catalog says nothing new; somebody may have been heard of meanwhile.
func (b *Book) record(brokers map[string]position) error {
	b.writing.Lock()
	defer b.writing.Unlock()
	b.compare(brokers)
	next := b.written()
	if maps.Equal(next.Brokers, brokers) || next.Cluster == "" {
		return nil
	}
	next.Brokers = maps.Clone(brokers)
	return b.write(next)
}

// compare forgets what was heard of brokers and is not so any more.
func (b *Book) compare(brokers map[string]position) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for node := range b.recorded {
		if _, stays := brokers[node]; !stays {
			delete(b.heard, node)
		}
	}
	for node, p := range brokers {
		if b.recorded[node] == p {
			continue
		}
		// What was heard is as good or better if it is of this data directory: the
		// catalog may still be on its way through the past.
		if h, ok := b.heard[node]; ok && h.Instance != p.Instance {
			delete(b.heard, node)
		}
	}
	b.recorded = maps.Clone(brokers)
}

func (b *Book) written() page {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.page
}

// hear takes positions that others told, unless something later is known.
func (b *Book) hear(told map[string]heardOf) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for node, h := range told {
		have, ok := b.heard[node]
		if h.Peer == "" || ok && have.Since >= h.Since {
			continue
		}
		if !ok && len(b.heard) >= maxHeard {
			continue
		}
		b.heard[node] = h
	}
}

// maxHeard bounds the brokers that are remembered without the catalog knowing
// them.
const maxHeard = 1000

// tell is what this broker has heard of the positions of others.
func (b *Book) tell() map[string]heardOf {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.heard)
}

// nodes are all that have a position, in order.
func (b *Book) nodes() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	known := make(map[string]bool, len(b.page.Brokers))
	for node := range b.page.Brokers {
		known[node] = true
	}
	for node := range b.heard {
		known[node] = true
	}
	return slices.Sorted(maps.Keys(known))
}

// write replaces the file. The caller holds writing.
func (b *Book) write(next page) error {
	data, err := json.MarshalIndent(next, "", "  ")
	if err != nil {
		return fmt.Errorf("cluster: encode %s: %w", b.path, err)
	}
	if err := vfs.WriteFileAtomic(b.fs, b.path, append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("cluster: write %s: %w", b.path, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.page = next
	return nil
}
