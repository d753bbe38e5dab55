package faultfs

import (
	"strings"
	"syscall"
)

// Op is an operation on the file system or on a file.
type Op uint8

// The operations, as faults and counts name them.
const (
	OpOpen Op = iota
	OpRead
	OpWrite
	OpDatasync
	OpTruncate
	OpRename
	OpRemove
	OpMkdir
	OpReadDir
	OpStat
	OpSyncDir
	OpLink
	numOps
)

var opNames = [numOps]string{"open", "read", "write", "datasync", "truncate", "rename", "remove", "mkdir", "readdir", "stat", "syncdir", "link"}

func (o Op) String() string {
	if o < numOps {
		return opNames[o]
	}
	return "unknown"
}

// Fault makes an operation fail.
type Fault struct {
	Op    Op
	Name  func(name string) bool // which names; nil: all. For a rename or link it is asked for the new one
	Skip  int                    // how many are let pass first
	Times int                    // how many fail; 0: one, negative: all that follow
	Err   error                  // nil: EIO
	Bytes int                    // OpWrite: how many bytes are written before it fails
}

// HasSuffix is a Fault.Name for names with an ending.
func HasSuffix(suffix string) func(string) bool {
	return func(name string) bool { return strings.HasSuffix(name, suffix) }
}

// Inject adds a fault. If several match an operation, the one added first decides.
func (f *FS) Inject(fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if fault.Err == nil {
		fault.Err = syscall.EIO
	}
	if fault.Times == 0 {
		fault.Times = 1
	}
	f.faults = append(f.faults, &fault)
}

// Heal removes all faults, the bound on space and the read-only state.
func (f *FS) Heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults, f.space, f.readOnly = nil, -1, false
}

// SetSpace bounds what all files together may hold; negative: no bound.
func (f *FS) SetSpace(bytes int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.space = bytes
}

// SetReadOnly makes everything that writes fail with EROFS.
func (f *FS) SetReadOnly(on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.readOnly = on
}

// SetWriteback sets the probability that a write is followed by some dirty sectors
// of that file getting to the platter by themselves.
func (f *FS) SetWriteback(p float64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writeback = p
}

// Hold makes an operation hang where it is, before it does anything, until release
// is called. entered receives once for each call that hangs. name as in Fault.
func (f *FS) Hold(op Op, name func(string) bool) (entered <-chan string, release func()) {
	h := &hold{op: op, name: name, entered: make(chan string, 64), released: make(chan struct{})}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.holds = append(f.holds, h)
	return h.entered, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		for i, other := range f.holds {
			if other == h {
				f.holds = append(f.holds[:i:i], f.holds[i+1:]...)
				close(h.released)
			}
		}
	}
}

type hold struct {
	op       Op
	name     func(string) bool
	entered  chan string
	released chan struct{}
}

// Counts is how often each operation was called, whether it failed or not.
type Counts [numOps]int

// Of returns the count of one operation.
func (c Counts) Of(op Op) int { return c[op] }

// Counts returns the counts since New.
func (f *FS) Counts() Counts {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts
}

// OpenFiles is how many files were opened and not closed.
func (f *FS) OpenFiles() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open
}

// enter counts an operation, hangs if it must, and returns the fault that it meets.
// It returns with mu held.
func (f *FS) enter(op Op, name string) *Fault {
	f.mu.Lock()
	f.counts[op]++
	for i := 0; i < len(f.holds); i++ {
		h := f.holds[i]
		if h.op != op || (h.name != nil && !h.name(name)) {
			continue
		}
		f.mu.Unlock()
		select {
		case h.entered <- name:
		default: // nobody counts any more
		}
		<-h.released
		f.mu.Lock()
		i = -1 // the list has changed
	}
	for _, fault := range f.faults {
		if fault.Op != op || fault.Times == 0 || (fault.Name != nil && !fault.Name(name)) {
			continue
		}
		if fault.Skip > 0 {
			fault.Skip--
			continue
		}
		if fault.Times > 0 {
			fault.Times--
		}
		return fault
	}
	return nil
}
