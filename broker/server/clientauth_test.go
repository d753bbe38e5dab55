package server

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"felix.dev/felix/broker/wire"
)

// authority signs certificates of clients.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	a.cert, a.key = a.sign(&x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, nil)
	return a
}

func (a *authority) sign(c, by *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	c.SerialNumber, c.NotBefore, c.NotAfter = big.NewInt(1), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	signer := key
	if by == nil {
		by = c
	} else {
		signer = a.key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, by, key.Public(), signer)
	if err != nil {
		a.t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return leaf, key
}

// client is a certificate for a client.
func (a *authority) client(usage x509.ExtKeyUsage) tls.Certificate {
	a.t.Helper()
	leaf, key := a.sign(&x509.Certificate{KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{usage}}, a.cert)
	return tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key, Leaf: leaf}
}

// write makes the authority the one of a file.
func (a *authority) write(file string) {
	a.t.Helper()
	b := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
	if err := os.WriteFile(file, b, 0o600); err != nil {
		a.t.Fatal(err)
	}
}

// connects says whether a client with these certificates is served.
func (h *harness) connects(conf *tls.Config, certs ...tls.Certificate) bool {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), testWait)
	defer cancel()
	conf.Certificates = certs
	// What the server does not ask for is not sent; what it asks for is, whoever signed it.
	if len(certs) > 0 {
		conf.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &certs[0], nil }
	}
	conn, err := quic.DialAddr(ctx, h.server.Addr().String(), conf, &quic.Config{MaxIncomingUniStreams: 10})
	if err != nil {
		return false
	}
	defer func() { _ = conn.CloseWithError(0, "") }()
	// In TLS 1.3 a client is done before the server has seen its certificate.
	s, err := conn.OpenStreamSync(ctx)
	if err == nil {
		_, err = s.Write(wire.AppendMessage(nil, &wire.Auth{TenantID: testTenant, Token: "good"}))
	}
	if err == nil {
		_ = s.SetReadDeadline(time.Now().Add(testWait))
		_, err = s.Read(make([]byte, 1))
	}
	if _, alert := errors.AsType[*quic.TransportError](err); err != nil && !alert {
		h.t.Errorf("got %v, want an alert of TLS", err)
	}
	return err == nil
}

func TestClientCertificates(t *testing.T) {
	ours, other := newAuthority(t), newAuthority(t)
	file := filepath.Join(t.TempDir(), "ca.pem")
	ours.write(file)
	cas, err := LoadClientCAs(file, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	good, foreign, server := ours.client(x509.ExtKeyUsageClientAuth), other.client(x509.ExtKeyUsageClientAuth), ours.client(x509.ExtKeyUsageServerAuth)
	for _, tt := range []struct {
		mode ClientAuth
		// With no certificate, a good one, one of somebody else, one for servers.
		none, good, foreign, server bool
	}{
		{ClientAuthNone, true, true, true, true},
		{ClientAuthOptional, true, true, false, false},
		{ClientAuthRequired, false, true, false, false},
	} {
		t.Run(tt.mode.String(), func(t *testing.T) {
			h := start(t, func(c *Config) { c.ClientAuth, c.ClientCAs = tt.mode, cas.Pool })
			for _, protos := range [][]string{nil, {ALPN}} {
				got := [...]bool{
					h.connects(clientTLS(protos...)), h.connects(clientTLS(protos...), good),
					h.connects(clientTLS(protos...), foreign), h.connects(clientTLS(protos...), server),
				}
				if want := [...]bool{tt.none, tt.good, tt.foreign, tt.server}; got != want {
					t.Errorf("ALPN %v: got %v, want %v", protos, got, want)
				}
			}
		})
	}
}

// Who was let in yesterday is held against the CAs of today, also with a session of
// yesterday.
func TestClientCertificatesAreNotResumed(t *testing.T) {
	ours, next := newAuthority(t), newAuthority(t)
	var today atomic.Pointer[x509.CertPool]
	trust := func(a *authority) {
		pool := x509.NewCertPool()
		pool.AddCert(a.cert)
		today.Store(pool)
	}
	trust(ours)
	h := start(t, func(c *Config) { c.ClientAuth, c.ClientCAs = ClientAuthRequired, today.Load })
	conf, cert := clientTLS(), ours.client(x509.ExtKeyUsageClientAuth)
	conf.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	if !h.connects(conf, cert) {
		t.Fatal("refused with a good certificate")
	}
	trust(next)
	if h.connects(conf, cert) {
		t.Error("let in with a certificate of an authority that is out")
	}
}

func TestClientCAsReload(t *testing.T) {
	now := time.Now()
	lines := newLogLines()
	first, second := newAuthority(t), newAuthority(t)
	file := filepath.Join(t.TempDir(), "ca.pem")
	if _, err := LoadClientCAs(file, nil, nil); err == nil {
		t.Error("a missing file was loaded")
	}
	first.write(file)
	cas, err := LoadClientCAs(file, func() time.Time { return now }, slog.New(lines))
	if err != nil {
		t.Fatal(err)
	}
	takes := func(a *authority) bool {
		now = now.Add(followEvery)
		leaf := a.client(x509.ExtKeyUsageClientAuth).Leaf
		_, err := leaf.Verify(x509.VerifyOptions{Roots: cas.Pool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
		return err == nil
	}
	if !takes(first) || takes(second) {
		t.Error("not the authority of the file")
	}
	for _, garbage := range []string{"", "garbage", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"} {
		if err := os.WriteFile(file, []byte(garbage), 0o600); err != nil {
			t.Fatal(err)
		}
		if !takes(first) {
			t.Errorf("%q: the last good authority was lost", garbage)
		}
	}
	if n := lines.count(slog.LevelError); n != 3 {
		t.Errorf("%d errors logged", n)
	}
	second.write(file)
	if takes(first) || !takes(second) {
		t.Error("not the authority of the new file")
	}
}

func TestParseClientAuth(t *testing.T) {
	for _, a := range []ClientAuth{ClientAuthNone, ClientAuthOptional, ClientAuthRequired} {
		if got, ok := ParseClientAuth(a.String()); !ok || got != a {
			t.Errorf("%s: got %v", a, got)
		}
	}
	if _, ok := ParseClientAuth("required"); ok {
		t.Error("took another spelling")
	}
}
