package faultfs

import (
	"io/fs"
	"time"
)

// node is a file or a directory.
type node struct {
	dir bool

	// A file.
	data  []byte             // what programs see
	disk  []byte             // what is on the platter
	dirty map[int64]struct{} // sectors of data that a flush has to copy

	failures int // flushes that failed

	// A directory.
	names   map[string]*node // what programs see
	durable map[string]*node // what is on the platter
	pending []step           // what led from durable to names
}

// step is one change of a directory's names.
type step map[string]*node // nil: the name is gone

func newDir() *node {
	return &node{dir: true, names: map[string]*node{}, durable: map[string]*node{}}
}

func (n *node) change(s step) {
	for name, to := range s {
		if to == nil {
			delete(n.names, name)
		} else {
			n.names[name] = to
		}
	}
	n.pending = append(n.pending, s)
}

type info struct {
	name string
	size int64
	mode fs.FileMode
}

func infoOf(name string, n *node) info {
	if n.dir {
		return info{name: name, mode: fs.ModeDir | 0o755}
	}
	return info{name: name, size: int64(len(n.data)), mode: 0o644}
}

func (i info) Name() string { return i.name }

func (i info) Size() int64 { return i.size }

func (i info) Mode() fs.FileMode { return i.mode }

func (i info) ModTime() time.Time { return time.Time{} }

func (i info) IsDir() bool { return i.mode.IsDir() }

func (i info) Sys() any { return nil }
