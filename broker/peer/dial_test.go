package peer

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestDial(t *testing.T) {
	d := newTown(t)
	a, b := d.node("a"), d.node("b")
	type seen struct {
		Node, Target string
		Kind         Kind
	}
	got := make(chan seen, 3)
	for _, k := range []Kind{KindRaft, KindForward, KindFetch} {
		b.Handle(k, func(ctx context.Context, c *Conn) {
			got <- seen{c.Node, c.Target, c.Kind}
			echo(ctx, c)
		})
	}
	for _, want := range []seen{{"a", "7/x", KindRaft}, {"a", "", KindForward}, {"a", strings.Repeat("t", maxTarget), KindFetch}} {
		for _, dial := range []func() (*Conn, error){
			func() (*Conn, error) { return a.Dial(t.Context(), "b", want.Kind, want.Target) },
			func() (*Conn, error) { return a.DialAddr(t.Context(), b.Addr().String(), want.Kind, want.Target) },
		} {
			c, err := dial()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(<-got, want); diff != "" {
				t.Errorf("what the handler sees (-got +want)\n%s", diff)
			}
			if diff := cmp.Diff(seen{c.Node, c.Target, c.Kind}, seen{"b", want.Target, want.Kind}); diff != "" {
				t.Errorf("what the dialing side sees (-got +want)\n%s", diff)
			}
			if _, err := io.WriteString(c, "hello"); err != nil {
				t.Error(err)
			}
			text := make([]byte, 5)
			if _, err := io.ReadFull(c, text); err != nil || string(text) != "hello" {
				t.Errorf("%q, %v", text, err)
			}
			for range 2 {
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	}
	eventually(t, "connections that were closed are forgotten", func() bool { return count(a) == 0 && count(b) == 0 })
}

// server is something else that listens where a peer should.
func server(t *testing.T, serve func(c net.Conn)) (addr string) {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer c.Close()
				serve(c)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		running.Wait()
	})
	return l.Addr().String()
}

// TestHostileServer: dialing one ends in time, with an error that says what it is.
func TestHostileServer(t *testing.T) {
	t.Parallel()
	d := newTown(t)
	a, hurried := d.node("a"), d.node("a", func(c *Config) { c.HandshakeTimeout = 300 * time.Millisecond })
	pair, err := d.certify("b").Certificate()
	if err != nil {
		t.Fatal(err)
	}
	hold := func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }
	config := &tls.Config{Certificates: []tls.Certificate{*pair}, NextProtos: []string{protocol}, ClientAuth: tls.RequireAnyClientCert}
	afterTLS := func(cfg *tls.Config, serve func(c net.Conn)) func(net.Conn) {
		return func(c net.Conn) {
			s := tls.Server(c, cfg)
			if s.HandshakeContext(t.Context()) == nil {
				serve(s)
			}
			hold(c)
		}
	}
	other, none := config.Clone(), config.Clone()
	other.NextProtos, none.NextProtos = []string{"h2"}, nil
	liar := answer{node: "somebody", cluster: "c1"}
	foreign := answer{node: "b", cluster: "c2"}

	for _, c := range []struct {
		name  string
		serve func(net.Conn)
		is    error
	}{
		{"silence", hold, ErrUnreachable},
		{"closes", func(net.Conn) {}, ErrUnreachable},
		{"garbage", func(c net.Conn) { send(c, "220 mail.example ready\r\n"); hold(c) }, ErrProtocol},
		{"another protocol", afterTLS(other, hold), ErrProtocol},
		{"no protocol", afterTLS(none, hold), ErrProtocol},
		{"silence after tls", afterTLS(config, hold), ErrUnreachable},
		{"closes after tls", afterTLS(config, func(c net.Conn) { c.Close() }), ErrUnreachable},
		{"garbage after tls", afterTLS(config, func(c net.Conn) { send(c, string(make([]byte, 100))); hold(c) }), ErrProtocol},
		{"answer of another node", afterTLS(config, func(c net.Conn) { send(c, string(liar.bytes())); hold(c) }), &RefusedError{Reason: RefusedNode}},
		{"answer of another cluster", afterTLS(config, func(c net.Conn) { send(c, string(foreign.bytes())); hold(c) }), &RefusedError{Reason: RefusedCluster}},
	} {
		t.Run(c.name, func(t *testing.T) {
			from := a
			if strings.HasPrefix(c.name, "silence") {
				from = hurried
			}
			d.moved("b", server(t, c.serve))
			conn, err := from.Dial(t.Context(), "b", KindRaft, "")
			if err == nil {
				conn.Close()
			}
			var want, got *RefusedError
			switch {
			case !errors.As(c.is, &want):
				if !errors.Is(err, c.is) {
					t.Errorf("got %v, want %v", err, c.is)
				}
			case !errors.As(err, &got) || got.Reason != want.Reason:
				t.Errorf("got %v, want %v", err, want)
			}
			if err != nil && !strings.Contains(err.Error(), "node b") {
				t.Errorf("%v: does not say where", err)
			}
		})
	}
	t.Run("context", func(t *testing.T) {
		d.moved("b", server(t, afterTLS(config, hold)))
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		defer cancel()
		if _, err := a.Dial(ctx, "b", KindRaft, ""); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, ErrUnreachable) {
			t.Errorf("got %v", err)
		}
	})
}

// TestMove is B80 and B81: a node that comes back at another address is reached there at the next connection, also if
// the address is a name; and one that is at its old address by now is not taken for it.
func TestMove(t *testing.T) {
	d := newTown(t)
	a, b := d.node("a"), d.node("b")
	ok := func(who string) CallHandler {
		return func(context.Context, string, json.RawMessage) (any, error) { return who, nil }
	}
	call := func() (who string, err error) {
		err = a.Call(t.Context(), "b", "ok", nil, &who)
		return who, err
	}
	b.HandleCall("ok", ok("old"))
	if who, err := call(); err != nil || who != "old" {
		t.Fatal(who, err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	d.moved("b", d.node("c").Addr().String()) // somebody else has its address now
	eventually(t, "the connection is given up", func() bool { return len(connsOf(a)) == 0 })
	if _, err := call(); !errors.Is(err, ErrCertificate) {
		t.Errorf("another node was taken for it: %v", err)
	}
	again := d.node("b", func(c *Config) { c.Listen = "localhost:0" })
	again.HandleCall("ok", ok("new"))
	_, port, err := net.SplitHostPort(again.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	d.moved("b", "localhost:"+port)
	if who, err := call(); err != nil || who != "new" {
		t.Errorf("got %q, %v", who, err)
	}
}
