package peer

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"strings"
	"testing"
)

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
