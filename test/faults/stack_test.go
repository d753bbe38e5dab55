package faults_test

import (
	"context"
	"sync/atomic"
	"testing"

	"felix.dev/felix/broker/auth"
	"felix.dev/felix/broker/egress"
	"felix.dev/felix/broker/seglog"
	"felix.dev/felix/broker/server"
	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/vfs/faultfs"
	"felix.dev/felix/broker/wire"
	"felix.dev/felix/client"
)

// stack is what a broker does for one durable stream, "s", over a disk that can fail:
// package broker writes to the real one only. It is put together as there.
type stack struct {
	t      *testing.T
	fs     *faultfs.FS
	shard  *stream.Shard
	engine *egress.Engine
	server *server.Server
	node   node // how to get at it
}

const stackDir = "/data/s/0"

// startStack opens the log on fs and serves it.
func startStack(t *testing.T, fs *faultfs.FS) *stack {
	t.Helper()
	k := &stack{t: t, fs: fs, node: node{t: t, id: theIdentity(t)}}
	k.start()
	t.Cleanup(k.stop)
	return k
}

func logConfig(fs *faultfs.FS) seglog.Config {
	return seglog.Config{FS: fs, Dir: stackDir, SegmentBytes: 64 << 10, Prefill: true, Incarnation: [16]byte{1}}
}

func (k *stack) start() {
	t := k.t
	t.Helper()
	name := stream.Name{Tenant: tenant, Namespace: namespace, Stream: "s"}
	var err error
	k.shard, err = stream.Open(stream.Config{Name: name, TailBytes: 64 << 10}, func(h stream.Hooks) (stream.Log, error) {
		cfg := logConfig(k.fs)
		cfg.Committed, cfg.OnRecover = h.Committed, h.OnRecover
		cfg.RestoreState, cfg.SnapshotState = h.RestoreState, h.SnapshotState
		l, _, err := seglog.Open(cfg)
		if err != nil {
			return nil, err
		}
		return stream.Segments(l), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if k.engine, err = egress.New(egress.Config{}); err != nil {
		t.Fatal(err)
	}
	cert, err := server.LoadCertificate(k.node.id.cert, k.node.id.key, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	k.server, err = server.Start(bounded(t), server.Config{
		Addr: "127.0.0.1:0", Certificate: cert.Certificate, Egress: k.engine, Auth: everybody{},
		Directory: &directory{st: stream.NewStream(name, "1", stream.Durable, wire.RoutingModulo, []stream.Place{k.shard})},
	})
	if err != nil {
		t.Fatal(err)
	}
	k.node.addr = k.server.Addr().String()
}

// stop shuts down in the order that package broker does. What a failing disk says
// about it is not an error of the test.
func (k *stack) stop() {
	if k.server == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), testWait)
	defer cancel()
	_ = k.server.Drain(ctx)
	_ = k.shard.Close(ctx, stream.EndShutdown)
	k.server.Close(ctx)
	k.engine.Close()
	_ = k.shard.CloseLog()
	k.server = nil
}

func (k *stack) restart() {
	k.t.Helper()
	k.stop()
	k.start()
}

// directory knows one stream.
type directory struct {
	st         *stream.Stream
	generation atomic.Uint64
}

func (d *directory) Generation() uint64 { return d.generation.Load() }

func (d *directory) Brokers() []wire.Broker { return nil }

func (d *directory) Stream(n stream.Name) (*stream.Stream, error) {
	if n != d.st.Name {
		return nil, &stream.Error{Code: wire.CodeNotFound, Retry: wire.RetryAfter, Message: "no such stream"}
	}
	return d.st, nil
}

// everybody may do everything.
type everybody struct{}

func (everybody) Verify(context.Context, string, string) (*auth.Principal, error) {
	all := ":stream:" + tenant + "/*"
	return auth.NewPrincipal("tester", tenant, []string{"stream.publish" + all, "stream.subscribe" + all}), nil
}

var stackStream = client.Stream{Namespace: namespace, Name: "s"}
