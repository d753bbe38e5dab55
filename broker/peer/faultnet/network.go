package faultnet

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
)

// TB is what a Network needs of a *testing.T.
type TB interface {
	Helper()
	Logf(format string, args ...any)
	Cleanup(f func())
}

// Network connects nodes. What is done to a link is done to the connections that
// exist on it too. Safe for concurrent use.
type Network struct {
	seed    uint64
	running sync.WaitGroup

	mu      sync.Mutex
	changed chan struct{} // closed and made anew with each change of a rule
	closed  bool
	addrs   map[string]string // by node
	nodes   map[string]string // by each address that it ever had
	links   map[link]rule
	lonely  map[string]bool // isolated
	gone    map[string]bool // refused
	dialed  map[link]uint64
	relays  map[*relay]struct{}
}

// link is one direction.
type link struct{ from, to string }

func (l link) back() link { return link{l.to, l.from} }

// New makes a network that ends with the test. Seed 0 stands for $FELIX_SEED, and
// without it for any; which one it is, is logged.
func New(tb TB, seed uint64) *Network {
	tb.Helper()
	if s, err := strconv.ParseUint(os.Getenv("FELIX_SEED"), 10, 64); seed == 0 && err == nil {
		seed = s
	}
	for seed == 0 {
		seed = rand.Uint64() //nolint:gosec // it is to be repeated, not to be secret
	}
	tb.Logf("faultnet: seed %d (FELIX_SEED=%d plays it again)", seed, seed)
	n := &Network{
		seed: seed, changed: make(chan struct{}), addrs: map[string]string{}, nodes: map[string]string{},
		links: map[link]rule{}, lonely: map[string]bool{}, gone: map[string]bool{},
		dialed: map[link]uint64{}, relays: map[*relay]struct{}{},
	}
	tb.Cleanup(n.close)
	return n
}

// Node gives one broker's view of the network.
func (n *Network) Node(name string) *Node { return &Node{network: n, name: name} }

// Node is one broker's view of the network. Its methods Dial and Resolve go into a
// peer.Config.
type Node struct {
	network *Network
	name    string
}

// SetAddr says where the node listens from now on.
func (n *Node) SetAddr(addr string) {
	n.network.mu.Lock()
	defer n.network.mu.Unlock()
	n.network.addrs[n.name] = addr
	n.network.nodes[addr] = n.name
}

// Resolve is for peer.Config.Resolve.
func (n *Node) Resolve(node string) (addr string, ok bool) {
	n.network.mu.Lock()
	defer n.network.mu.Unlock()
	addr, ok = n.network.addrs[node]
	return addr, ok
}

// close ends every connection and waits for the relays.
func (n *Network) close() {
	n.mu.Lock()
	n.closed = true
	for r := range n.relays {
		r.close()
	}
	n.change()
	n.mu.Unlock()
	n.running.Wait()
}

// change tells those who wait for another rule. The caller holds mu.
func (n *Network) change() {
	close(n.changed)
	n.changed = make(chan struct{})
}

// dialError is the error of a network.
func dialError(addr string, err error) error {
	return &net.OpError{Op: "dial", Net: "tcp", Err: fmt.Errorf("%s: %w (faultnet)", addr, err)}
}
