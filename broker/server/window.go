package server

import (
	"sync"

	"github.com/quic-go/quic-go"
)

const (
	// A stream starts with a window of 512 KiB and a connection with 1 MiB. They
	// grow as a client proves to be faster than that.
	initialStreamWindow     = 512 << 10
	initialConnectionWindow = 1 << 20
)

// windows decides which connections may have larger receive windows: none that has
// not authenticated, and none beyond what all may have together. What is not read
// yet lies in these windows, so they are what a client can make the broker hold.
// A refused increase costs speed and nothing else: frames are read as they arrive,
// so that a window smaller than a frame is no deadlock.
type windows struct {
	limit uint64

	mu      sync.Mutex
	granted uint64
	byConn  map[*quic.Conn]uint64 // authenticated connections and what they were granted
}

func newWindows(limit uint64) *windows {
	return &windows{limit: limit, byConn: make(map[*quic.Conn]uint64)}
}

// open lets the windows of a connection grow.
func (w *windows) open(c *quic.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.byConn[c]; !ok {
		w.byConn[c] = 0
	}
}

// forget gives back what the connection was granted.
func (w *windows) forget(c *quic.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.granted -= w.byConn[c]
	delete(w.byConn, c)
}

// allow is quic.Config's AllowConnectionWindowIncrease.
func (w *windows) allow(c *quic.Conn, delta uint64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	had, ok := w.byConn[c]
	if !ok || w.granted+delta > w.limit {
		return false
	}
	w.granted += delta
	w.byConn[c] = had + delta
	return true
}
