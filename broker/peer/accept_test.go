package peer

import (
	"bytes"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"felix.dev/felix/broker/peer/pki"
)

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

// raw is a TCP connection to a transport.
func raw(t *testing.T, to *Transport) net.Conn {
	t.Helper()
	var d net.Dialer
	c, err := d.DialContext(t.Context(), "tcp", to.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// secured is one with TLS, with a certificate that is good.
func secured(t *testing.T, to *Transport, files *pki.Files) *tls.Conn {
	t.Helper()
	pair, err := files.Certificate()
	if err != nil {
		t.Fatal(err)
	}
	c := tls.Client(raw(t, to), &tls.Config{Certificates: []tls.Certificate{*pair}, InsecureSkipVerify: true, NextProtos: []string{protocol}})
	if err := c.HandshakeContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestHostileClient: whatever comes instead of a hello ends, is reported, and leaves nothing behind.
func TestHostileClient(t *testing.T) {
	t.Parallel()
	d := newTown(t)
	var log logBuffer
	listen := func(timeout time.Duration) *Transport {
		b := d.node("b", func(c *Config) { c.HandshakeTimeout, c.Log = timeout, log.logger() })
		b.Handle(KindRaft, echo)
		return b
	}
	hurried, patient := listen(300*time.Millisecond), listen(patience)
	evil := d.certify("evil")
	good := hello{kind: KindRaft, cluster: "c1", from: "evil", to: "b"}
	text := good.bytes()
	other := good
	other.cluster = "c2"
	strange := bytes.Clone(text)
	strange[9] = 2

	cases := []struct {
		name   string
		tls    bool
		text   []byte
		answer Reason // with TLS; 0: none
	}{
		{name: "silence"},
		{name: "garbage", text: bytes.Repeat([]byte("garbage "), 64<<10)},
		{name: "half a client hello", text: []byte{22, 3, 1, 2, 0, 1, 0}},
		{name: "an http request", text: []byte("GET / HTTP/1.1\r\nHost: b\r\n\r\n")},
		{name: "silence after tls", tls: true},
		{name: "garbage after tls", tls: true, text: bytes.Repeat([]byte("garbage "), 64<<10), answer: RefusedHello},
		{name: "half a hello", tls: true, text: text[:len(text)/2]},
		{name: "a hello without its last byte", tls: true, text: text[:len(text)-1]},
		{name: "a hello that is too large", tls: true, text: append(bytes.Clone(text[:12]), 0xff, 0xff), answer: RefusedHello},
		{name: "another version", tls: true, text: strange, answer: RefusedVersion},
		{name: "another cluster", tls: true, text: other.bytes(), answer: RefusedCluster},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var conn net.Conn
			switch {
			case !c.tls:
				conn = raw(t, hurried)
			case c.answer == 0:
				conn = secured(t, hurried, evil)
			default:
				conn = secured(t, patient, evil)
			}
			go send(conn, string(c.text)) // it may be closed before all of it is written
			said := wantEnd(t, conn)
			if c.answer != 0 {
				if a, err := readAnswer(bytes.NewReader(said)); err != nil || a.reason != c.answer {
					t.Errorf("answered %+v, %v, want %v", a, err, c.answer)
				}
			} else if c.tls && len(said) > 0 {
				t.Errorf("answered %q", said)
			}
		})
	}
	eventually(t, "nothing is left of them", func() bool { return count(hurried)+count(patient) == 0 })
	eventually(t, "all are reported", func() bool { return strings.Count(log.String(), "peer connection refused") == len(cases) })
	a := d.node("a")
	c, err := a.Dial(t.Context(), "b", KindRaft, "")
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}

// TestSilentCrowd: those who say nothing keep nobody out.
func TestSilentCrowd(t *testing.T) {
	d := newTown(t)
	a := d.node("a")
	b := d.node("b", func(c *Config) {
		c.HandshakeTimeout = time.Hour
		c.MaxHandshakes = 4
	})
	b.Handle(KindRaft, echo)
	crowd := make([]net.Conn, 0, 40)
	for range cap(crowd) {
		crowd = append(crowd, raw(t, b))
	}
	for _, c := range crowd[:len(crowd)-4] {
		wantEnd(t, c)
	}
	c, err := a.Dial(t.Context(), "b", KindRaft, "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(b.greeting); n > 4 {
		t.Errorf("%d connections have not said who they are", n)
	}
}
