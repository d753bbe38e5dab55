package route

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"felix.dev/felix/broker/peer"
	"felix.dev/felix/broker/peer/faultnet"
	"felix.dev/felix/broker/peer/pki"
	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/wire"
)

// realNode is a broker on a network, with TLS.
type realNode struct {
	table *fakeTable
	f     *Forwarder
	peers *peer.Transport
}

// startReal starts brokers a and b on a network that fails on demand.
func startReal(t testing.TB) (map[string]*realNode, *faultnet.Network) {
	t.Helper()
	network := faultnet.New(t, 0)
	ca := t.TempDir()
	if err := pki.CreateCA(ca, time.Now()); err != nil {
		t.Fatal(err)
	}
	nodes := make(map[string]*realNode)
	for _, name := range []string{"a", "b"} {
		dir := filepath.Join(t.TempDir(), "certs")
		if err := pki.Issue(ca, dir, name, time.Now()); err != nil {
			t.Fatal(err)
		}
		files, err := pki.Open(pki.In(dir), nil)
		if err != nil {
			t.Fatal(err)
		}
		at := network.Node(name)
		n := &realNode{table: newFakeTable()}
		n.peers, err = peer.Listen(t.Context(), peer.Config{
			NodeID: name, Listen: "127.0.0.1:0", Certificate: files.Certificate, CAs: files.CAs, DialNet: at.Dial, Resolve: at.Resolve,
		})
		if err != nil {
			t.Fatal(err)
		}
		at.SetAddr(n.peers.Addr().String())
		r, err := NewReceiver(ReceiverConfig{Table: n.table})
		if err != nil {
			t.Fatal(err)
		}
		n.peers.Handle(peer.KindForward, func(ctx context.Context, c *peer.Conn) { r.Serve(ctx, c) })
		n.peers.Serve()
		n.f, err = NewForwarder(Config{Self: name, Table: n.table, Dial: func(ctx context.Context, node string) (net.Conn, error) {
			return n.peers.Dial(ctx, node, peer.KindForward, "")
		}})
		if err != nil {
			t.Fatal(err)
		}
		nodes[name] = n
	}
	t.Cleanup(func() {
		network.HealAll()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		for _, n := range nodes {
			if err := n.f.Close(ctx); err != nil {
				t.Error(err)
			}
		}
		for _, n := range nodes {
			if err := n.peers.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return nodes, network
}

// led has a lead shard0 as far as both know.
func led(t testing.TB, nodes map[string]*realNode) (*book, *replica) {
	t.Helper()
	b := &book{}
	r := newReplica(t, b)
	nodes["a"].table.set(shard0, State{Local: r.shard, Generation: 1})
	nodes["b"].table.set(shard0, State{Node: "a", Addr: "a:1", Generation: 1})
	return b, r
}

func TestOverTLS(t *testing.T) {
	nodes, _ := startReal(t)
	b, _ := led(t, nodes)
	p := nodes["b"].f.Place(shard0)
	var want []string
	var calls []*call
	for i := range 500 {
		text := fmt.Sprint(i)
		if i%100 == 7 {
			text += strings.Repeat("x", 1<<20)
		}
		want = append(want, text)
		calls = append(calls, newCall(t, text).publish(p))
	}
	for i, call := range calls {
		if at := call.ok(); at != uint64(i) {
			t.Errorf("%d is at %d", i, at)
		}
	}
	if d := cmp.Diff(want, b.all()); d != "" {
		t.Error("records differ")
	}
}

// B63, forwarding's part on real sockets: the owner is cut off in one direction or both,
// with publishes in flight. Their publishers hear of it within 10 s, and the broker is
// there again once the network is.
func TestCutOff(t *testing.T) {
	for name, cut := range map[string]func(*faultnet.Network){
		"both ways":   func(n *faultnet.Network) { n.Cut("a", "b") },
		"to owner":    func(n *faultnet.Network) { n.CutOneWay("b", "a") },
		"from owner":  func(n *faultnet.Network) { n.CutOneWay("a", "b") },
		"reset":       func(n *faultnet.Network) { n.Reset("a", "b") },
		"broker gone": func(n *faultnet.Network) { n.Refuse("a", true); n.Reset("a", "b") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nodes, network := startReal(t)
			_, r := led(t, nodes)
			p := nodes["b"].f.Place(shard0)
			newCall(t, "before").publish(p).ok()
			r.holds()
			sent := newCall(t, "sent").publish(p)
			for r.keeps() == 0 {
				time.Sleep(time.Millisecond)
			}
			begin := time.Now()
			cut(network)
			r.release(func(*stream.Publish) stream.Result {
				if name == "reset" || name == "broker gone" {
					time.Sleep(100 * time.Millisecond) // the answer must not be quicker
				}
				return stream.Result{}
			})
			if name == "to owner" { // its answer comes all the same
				sent.ok()
			} else {
				sent.refused(wire.CodeUnacknowledged, wire.RetryOutcomeUnknown, "")
			}
			r.does(nil)
			late := newCall(t, "late").publish(p)
			late.wait() // whatever becomes of it
			if took := time.Since(begin); took > 10*time.Second {
				t.Errorf("answered after %s", took)
			}
			network.HealAll()
			network.Refuse("a", false)
			for deadline := time.Now().Add(20 * time.Second); ; {
				if res := newCall(t, "again").publish(p).wait(); res.Err == nil {
					break
				} else if time.Now().After(deadline) {
					t.Fatal(res.Err)
				}
			}
		})
	}
}
