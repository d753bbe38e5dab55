package faultfs

import (
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"felix.dev/felix/broker/vfs"
)

// FS is the file system. Use New.
type FS struct {
	mu        sync.Mutex // guards everything, nodes included
	root      *node
	rng       *rand.Rand
	faults    []*Fault
	holds     []*hold
	counts    Counts
	open      int
	space     int64 // negative: no bound
	readOnly  bool
	writeback float64
}

var _ vfs.FS = (*FS)(nil)

// New returns an empty file system with a root directory. The seed decides what
// SetWriteback does.
func New(seed uint64) *FS {
	return &FS{root: newDir(), rng: newRand(seed), space: -1}
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) } //nolint:gosec // a test must be able to repeat it

func pathErr(op Op, name string, err error) error {
	return &fs.PathError{Op: op.String(), Path: name, Err: err}
}

func split(name string) []string {
	clean := strings.Trim(filepath.ToSlash(filepath.Clean(name)), "/")
	if clean == "." || clean == "" {
		return nil
	}
	return strings.Split(clean, "/")
}

// find returns the node of a name.
func (f *FS) find(name string) (*node, error) {
	n := f.root
	for _, part := range split(name) {
		if !n.dir {
			return nil, syscall.ENOTDIR
		}
		next, ok := n.names[part]
		if !ok {
			return nil, syscall.ENOENT
		}
		n = next
	}
	return n, nil
}

// parent returns the directory that a name is in, and its last part.
func (f *FS) parent(name string) (*node, string, error) {
	parts := split(name)
	if len(parts) == 0 {
		return nil, "", syscall.EINVAL
	}
	n, err := f.find(strings.Join(parts[:len(parts)-1], "/"))
	if err != nil {
		return nil, "", err
	}
	if !n.dir {
		return nil, "", syscall.ENOTDIR
	}
	return n, parts[len(parts)-1], nil
}

// begin is enter for operations that need no more than the fault's error; write
// says that the operation changes something. It returns with mu held.
func (f *FS) begin(op Op, name string, write bool) error {
	if fault := f.enter(op, name); fault != nil {
		return pathErr(op, name, fault.Err)
	}
	if write && f.readOnly {
		return pathErr(op, name, syscall.EROFS)
	}
	return nil
}

// OpenFile implements vfs.FS.
func (f *FS) OpenFile(name string, flag int, _ fs.FileMode) (vfs.File, error) {
	writable := flag&(os.O_WRONLY|os.O_RDWR) != 0
	err := f.begin(OpOpen, name, writable)
	defer f.mu.Unlock()
	if err != nil {
		return nil, err
	}
	dir, base, err := f.parent(name)
	if err != nil {
		return nil, pathErr(OpOpen, name, err)
	}
	n, ok := dir.names[base]
	switch {
	case ok && n.dir:
		return nil, pathErr(OpOpen, name, syscall.EISDIR)
	case ok && flag&os.O_CREATE != 0 && flag&os.O_EXCL != 0:
		return nil, pathErr(OpOpen, name, syscall.EEXIST)
	case !ok && flag&os.O_CREATE == 0:
		return nil, pathErr(OpOpen, name, syscall.ENOENT)
	case !ok:
		n = &node{dirty: map[int64]struct{}{}}
		dir.change(step{base: n})
	}
	if flag&os.O_TRUNC != 0 && writable {
		n.truncate(0)
	}
	f.open++
	return &file{fs: f, node: n, name: name, writable: writable, failures: n.failures}, nil
}

// Rename implements vfs.FS.
func (f *FS) Rename(oldName, newName string) error {
	err := f.begin(OpRename, newName, true)
	defer f.mu.Unlock()
	if err != nil {
		return err
	}
	from, oldBase, err := f.parent(oldName)
	if err != nil {
		return pathErr(OpRename, oldName, err)
	}
	n, ok := from.names[oldBase]
	if !ok {
		return pathErr(OpRename, oldName, syscall.ENOENT)
	}
	to, newBase, err := f.parent(newName)
	if err != nil {
		return pathErr(OpRename, newName, err)
	}
	if target, ok := to.names[newBase]; ok && (target.dir || n.dir) {
		return pathErr(OpRename, newName, syscall.EEXIST)
	}
	if from == to {
		if oldBase != newBase {
			from.change(step{oldBase: nil, newBase: n})
		}
		return nil
	}
	to.change(step{newBase: n})
	from.change(step{oldBase: nil})
	return nil
}

// Remove implements vfs.FS.
func (f *FS) Remove(name string) error {
	err := f.begin(OpRemove, name, true)
	defer f.mu.Unlock()
	if err != nil {
		return err
	}
	dir, base, err := f.parent(name)
	if err != nil {
		return pathErr(OpRemove, name, err)
	}
	n, ok := dir.names[base]
	if !ok {
		return pathErr(OpRemove, name, syscall.ENOENT)
	}
	if n.dir && len(n.names) > 0 {
		return pathErr(OpRemove, name, syscall.ENOTEMPTY)
	}
	dir.change(step{base: nil})
	return nil
}

// Link implements vfs.FS.
func (f *FS) Link(oldName, newName string) error {
	err := f.begin(OpLink, newName, true)
	defer f.mu.Unlock()
	if err != nil {
		return err
	}
	n, err := f.find(oldName)
	if err == nil && n.dir {
		err = syscall.EPERM
	}
	if err != nil {
		return pathErr(OpLink, oldName, err)
	}
	dir, base, err := f.parent(newName)
	if err == nil && dir.names[base] != nil {
		err = syscall.EEXIST
	}
	if err != nil {
		return pathErr(OpLink, newName, err)
	}
	dir.change(step{base: n})
	return nil
}

// MkdirAll implements vfs.FS.
func (f *FS) MkdirAll(name string, _ fs.FileMode) error {
	err := f.begin(OpMkdir, name, true)
	defer f.mu.Unlock()
	if err != nil {
		return err
	}
	n := f.root
	for _, part := range split(name) {
		next, ok := n.names[part]
		if !ok {
			next = newDir()
			n.change(step{part: next})
		}
		if !next.dir {
			return pathErr(OpMkdir, name, syscall.ENOTDIR)
		}
		n = next
	}
	return nil
}

// ReadDir implements vfs.FS.
func (f *FS) ReadDir(name string) ([]fs.DirEntry, error) {
	err := f.begin(OpReadDir, name, false)
	defer f.mu.Unlock()
	if err != nil {
		return nil, err
	}
	n, err := f.find(name)
	if err == nil && !n.dir {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return nil, pathErr(OpReadDir, name, err)
	}
	entries := make([]fs.DirEntry, 0, len(n.names))
	for base, child := range n.names {
		entries = append(entries, fs.FileInfoToDirEntry(infoOf(base, child)))
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}

// Stat implements vfs.FS.
func (f *FS) Stat(name string) (fs.FileInfo, error) {
	err := f.begin(OpStat, name, false)
	defer f.mu.Unlock()
	if err != nil {
		return nil, err
	}
	n, err := f.find(name)
	if err != nil {
		return nil, pathErr(OpStat, name, err)
	}
	return infoOf(filepath.Base(name), n), nil
}

// SyncDir implements vfs.FS.
func (f *FS) SyncDir(name string) error {
	err := f.begin(OpSyncDir, name, false)
	defer f.mu.Unlock()
	if err != nil {
		return err
	}
	n, err := f.find(name)
	if err == nil && !n.dir {
		err = syscall.ENOTDIR
	}
	if err == nil && f.readOnly && len(n.pending) > 0 {
		err = syscall.EROFS
	}
	if err != nil {
		return pathErr(OpSyncDir, name, err)
	}
	clear(n.durable)
	maps.Copy(n.durable, n.names)
	n.pending = nil
	return nil
}

// used is what all files together hold.
func (f *FS) used() int64 {
	seen := map[*node]bool{}
	var walk func(n *node) int64
	walk = func(n *node) int64 {
		if seen[n] {
			return 0
		}
		seen[n] = true
		total := int64(len(n.data))
		for _, child := range n.names {
			total += walk(child)
		}
		return total
	}
	return walk(f.root)
}
