package peer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"slices"
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

func count(t *Transport) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.conns) + t.incoming + len(t.by) + len(t.greeting)
}

// TestRefusals: every way not to be let in, by either side.
func TestRefusals(t *testing.T) {
	d := newTown(t)
	a, b := d.node("a"), d.node("b")
	b.Handle(KindRaft, echo)
	busy := d.node("busy", func(c *Config) { c.MaxConns = 1 })
	busy.Handle(KindRaft, echo)
	first, err := a.Dial(t.Context(), "busy", KindRaft, "")
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	d.node("crowded", func(c *Config) { c.MaxConnsPerPeer = 1 }).Handle(KindRaft, echo)
	second, err := a.Dial(t.Context(), "crowded", KindRaft, "")
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	d.node("foreign", func(c *Config) { c.Cluster = func() string { return "c2" } })
	d.node("new", func(c *Config) { c.Cluster = func() string { return "" } }).Handle(KindRaft, echo)
	any1 := d.certify("felix-peer")
	liar := d.node("liar", func(c *Config) { c.NodeID = "other"; c.Resolve = d.resolve }) // certificate names liar
	wild := d.node("wild", func(c *Config) { c.Certificate = any1.Certificate })
	wild.Handle(KindRaft, echo)
	d.moved("mistaken", b.Addr().String())
	d.moved("impostor", wild.Addr().String())

	for _, c := range []struct {
		name   string
		from   *Transport
		node   string
		kind   Kind
		reason Reason // 0: another error, or none
		is     error
		temp   bool
	}{
		{name: "taken", from: a, node: "b", kind: KindRaft},
		{name: "cluster not known yet", from: a, node: "new", kind: KindRaft},
		{name: "certificate for any node", from: a, node: "wild", kind: KindRaft},
		{name: "any node, dialing", from: wild, node: "b", kind: KindRaft},
		{name: "kind", from: a, node: "b", kind: KindFetch, reason: RefusedKind, temp: true},
		{name: "strange kind", from: a, node: "b", kind: 0, reason: RefusedKind, temp: true},
		{name: "cluster", from: a, node: "foreign", kind: KindRaft, reason: RefusedCluster},
		{name: "certificate names another", from: a, node: "mistaken", kind: KindRaft, is: ErrCertificate},
		{name: "hello is to another", from: a, node: "impostor", kind: KindRaft, reason: RefusedNode},
		{name: "hello is from another than the certificate", from: liar, node: "b", kind: KindRaft, reason: RefusedCertificate},
		{name: "full", from: a, node: "busy", kind: KindRaft, reason: RefusedBusy, temp: true},
		{name: "full for this peer", from: a, node: "crowded", kind: KindRaft, reason: RefusedBusy, temp: true},
		{name: "another peer is taken", from: b, node: "crowded", kind: KindRaft},
		{name: "nobody knows it", from: a, node: "nobody", kind: KindRaft, is: ErrUnreachable},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn, err := c.from.Dial(t.Context(), c.node, c.kind, "")
			if err == nil {
				defer conn.Close()
			}
			var refused *RefusedError
			switch {
			case c.is != nil:
				if !errors.Is(err, c.is) {
					t.Errorf("got %v, want %v", err, c.is)
				}
			case c.reason == 0:
				if err != nil {
					t.Error(err)
				}
			case !errors.As(err, &refused):
				t.Errorf("got %v, want a refusal", err)
			case refused.Reason != c.reason || refused.Temporary() != c.temp || refused.Addr == "" || refused.Node == "":
				t.Errorf("got %+v, want %v, temporary %t", refused, c.reason, c.temp)
			}
		})
	}
	// One that lies about itself is found out also by whoever means nobody in particular.
	var refused *RefusedError
	if _, err := a.DialAddr(t.Context(), liar.Addr().String(), KindCall, ""); !errors.As(err, &refused) || refused.Reason != RefusedCertificate {
		t.Errorf("an answer from another than the certificate: %v", err)
	}
	// Room again.
	if err := second.Close(); err != nil {
		t.Error(err)
	}
	eventually(t, "room for a connection", func() bool {
		c, err := a.Dial(t.Context(), "crowded", KindRaft, "")
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

// TestAnswersCluster: the side that knows its cluster refuses, also if it is the one that dialed.
func TestAnswersCluster(t *testing.T) {
	d := newTown(t)
	var mu sync.Mutex
	cluster := ""
	a := d.node("a")
	b := d.node("b", func(c *Config) {
		c.Cluster = func() string {
			mu.Lock()
			defer mu.Unlock()
			defer func() { cluster = "c2" }() // it is told in between
			return cluster
		}
	})
	b.Handle(KindRaft, echo)
	_, err := a.Dial(t.Context(), "b", KindRaft, "")
	var refused *RefusedError
	if !errors.As(err, &refused) || refused.Reason != RefusedCluster || refused.Cluster != "c2" {
		t.Errorf("got %v", err)
	}
}

func TestNames(t *testing.T) {
	for k, want := range map[Kind]string{KindRaft: "raft", KindForward: "forward", KindFetch: "fetch", KindCall: "call", 1: "kind 0x01"} {
		if got := k.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	var texts []string
	for r := RefusedHello; r <= RefusedClosing+1; r++ {
		texts = append(texts, r.String())
	}
	if slices.Sort(texts); len(slices.Compact(texts)) != int(RefusedClosing)+1 {
		t.Errorf("reasons share a text: %q", texts)
	}
}

func TestConfig(t *testing.T) {
	d := newTown(t)
	good := d.config("a")
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	bad := Config{NodeID: strings.Repeat("x", 129), HandshakeTimeout: -1, MaxConns: -1, MaxCallBytes: maxFrame + 1}
	_, err := Listen(t.Context(), bad)
	if err == nil {
		t.Fatal("a bad configuration is taken")
	}
	for _, want := range []string{"node id", "listen", "certificate", "handshake timeout", "connections", "call bytes"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v: does not say %q", err, want)
		}
	}
	taken := d.node("b")
	good.Listen = taken.Addr().String()
	if _, err := Listen(t.Context(), good); err == nil {
		t.Error("listening where somebody does")
	}
	nobody := Config{NodeID: "c", Listen: "127.0.0.1:0", CAs: func() *x509.CertPool { return nil }, Certificate: func() (*tls.Certificate, error) { return nil, nil }}
	c := d.listen(nobody)
	if _, err := c.Dial(t.Context(), "b", KindRaft, ""); !errors.Is(err, ErrUnreachable) {
		t.Errorf("without Resolve: %v", err)
	}
	if _, err := c.DialAddr(t.Context(), taken.Addr().String(), KindRaft, ""); !errors.Is(err, ErrCertificate) {
		t.Errorf("without CAs: %v", err)
	}
	if _, err := c.DialAddr(t.Context(), taken.Addr().String(), KindRaft, strings.Repeat("t", maxTarget+1)); !errors.Is(err, ErrProtocol) {
		t.Errorf("with a target that is too long: %v", err)
	}
}

// TestClose: everything that waits ends, and nothing begins anymore.
func TestClose(t *testing.T) {
	d := newTown(t)
	a, b := d.node("a"), d.node("b")
	ended := make(chan error, 1)
	b.Handle(KindRaft, func(ctx context.Context, c *Conn) {
		_, err := c.Read(make([]byte, 1))
		<-ctx.Done()
		ended <- errors.Join(err, c.Close())
	})
	out, err := a.Dial(t.Context(), "b", KindRaft, "")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	var closing sync.WaitGroup
	for range 2 {
		closing.Go(func() { _ = b.Close() })
	}
	closing.Wait()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("the handler's read gave no error")
		}
	default:
		t.Error("Close did not wait for the handler")
	}
	if err := out.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Error(err)
	}
	if _, err := out.Read(make([]byte, 1)); err == nil || isTimeout(err) {
		t.Errorf("the other side sees %v", err)
	}
	if _, err := a.Dial(t.Context(), "b", KindRaft, ""); !errors.Is(err, ErrUnreachable) {
		t.Errorf("dialing one that is closed: %v", err)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if _, err := a.Dial(t.Context(), "b", KindRaft, ""); !errors.Is(err, ErrClosed) {
		t.Errorf("dialing from one that is closed: %v", err)
	}
	if err := a.Call(t.Context(), "b", "x", nil, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("calling from one that is closed: %v", err)
	}
	a.Serve()
}

// TestCloseWithoutServe: those that wait to be accepted are let go.
func TestCloseWithoutServe(t *testing.T) {
	d := newTown(t)
	a := d.node("a")
	b := d.listen(d.config("b"))
	failed := make(chan error, 1)
	go func() {
		_, err := a.Dial(t.Context(), "b", KindRaft, "")
		failed <- err
	}()
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if err := <-failed; !errors.Is(err, ErrUnreachable) {
		t.Errorf("got %v", err)
	}
}
