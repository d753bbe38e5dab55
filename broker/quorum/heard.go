package quorum

import (
	"sync"
	"time"
)

// heard knows the connections that other servers have open to this one. A leader whose
// last one ends is dead, or about to come back: its followers need not wait long for it.
type heard struct {
	mu   sync.Mutex
	open map[heardOn]*inbound
	lost map[Server]time.Time
}

type heardOn struct {
	from Server
	kind laneKind
}

// maxLost bounds the servers that are remembered as gone.
const maxLost = 1024

// opened takes note of a connection. There is one of a kind: the one before it is
// dead, or the other side would use it.
func (h *heard) opened(s Server, kind laneKind, c *inbound) {
	h.mu.Lock()
	before := h.open[heardOn{s, kind}]
	h.open[heardOn{s, kind}] = c
	if kind == laneControl {
		delete(h.lost, s)
	}
	h.mu.Unlock()
	if before != nil {
		before.close()
	}
}

func (h *heard) closed(s Server, kind laneKind, c *inbound) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open[heardOn{s, kind}] != c {
		return
	}
	delete(h.open, heardOn{s, kind})
	if kind == laneControl {
		if len(h.lost) >= maxLost {
			clear(h.lost) // whoever of them leads is waited for a little longer
		}
		h.lost[s] = time.Now()
	}
}

// gone tells whether the server had a connection open and has none any more.
func (h *heard) gone(s Server) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.lost[s].IsZero()
}
