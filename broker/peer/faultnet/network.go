package faultnet

import (
	"context"
	"errors"
	"net"
	"time"
)

// TB is what a Network needs of a *testing.T.
type TB interface {
	Helper()
	Logf(format string, args ...any)
	Cleanup(f func())
}

// Network connects nodes. What it does to a link it does to the connections that exist too.
type Network struct{}

// New makes a network that ends with the test. Seed 0 takes $FELIX_SEED, or any; the seed is logged.
func New(tb TB, seed uint64) *Network { return &Network{} }

// Node gives one broker's view: its Dial and Resolve go into peer.Config.
func (n *Network) Node(name string) *Node { return &Node{} }

// Node is one broker's view of the network.
type Node struct{}

// SetAddr says where the node listens from now on; others resolve it there.
func (n *Node) SetAddr(addr string) {}

// Resolve is for peer.Config.Resolve.
func (n *Node) Resolve(node string) (addr string, ok bool) { return "", false }

// Dial is for peer.Config.DialNet.
func (n *Node) Dial(ctx context.Context, addr string) (net.Conn, error) {
	return nil, errors.New("faultnet: not there yet")
}

// Cut has nothing pass between a and b, in both directions, until they are healed. Like a
// cable that is pulled: connections stay, bytes wait, dialing hangs.
func (n *Network) Cut(a, b string) {}

// CutOneWay has nothing pass that from sends to to.
func (n *Network) CutOneWay(from, to string) {}

// Isolate cuts a node from all others.
func (n *Network) Isolate(node string) {}

// Partition cuts every link between nodes of different groups.
func (n *Network) Partition(groups ...[]string) {}

// Delay has everything from sends to to arrive later, by delay and up to jitter.
func (n *Network) Delay(from, to string, delay, jitter time.Duration) {}

// Flaky closes connections at random: one chunk in oneIn that passes between a and b closes its connection. 0: none.
func (n *Network) Flaky(a, b string, oneIn int) {}

// Refuse has dialing to a node fail at once, as if no process were there.
func (n *Network) Refuse(node string, on bool) {}

// Reset closes the connections that exist between a and b.
func (n *Network) Reset(a, b string) {}

// Heal ends Cut, CutOneWay, Delay and Flaky between a and b. A node that is isolated stays so.
func (n *Network) Heal(a, b string) {}

// HealAll ends every fault.
func (n *Network) HealAll() {}
