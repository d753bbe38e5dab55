package peer

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"felix.dev/felix/broker/peer/pki"
)

// expired is a certificate that was good until an hour ago.
func (d *town) expired(name string) *pki.Files {
	d.t.Helper()
	dir := filepath.Join(d.t.TempDir(), "certs")
	if err := pki.IssueFor(d.ca, dir, name, time.Now().Add(-2*time.Hour), time.Hour); err != nil {
		d.t.Fatal(err)
	}
	return open(d.t, dir)
}

// TestCertificates: both sides refuse what they must, and both get an error that says so.
func TestCertificates(t *testing.T) {
	t.Parallel()
	d, elsewhere := newTown(t), newTown(t)
	with := func(files *pki.Files) func(*Config) { return func(c *Config) { c.Certificate = files.Certificate } }
	good := d.node("good")
	good.Handle(KindRaft, echo)
	stranger := d.node("stranger", with(elsewhere.certify("stranger"))) // trusts us, but is not of us
	stranger.Handle(KindRaft, echo)
	old := d.node("old", with(d.expired("old")))
	old.Handle(KindRaft, echo)
	bare := d.node("bare", func(c *Config) {
		c.Certificate = func() (*tls.Certificate, error) { return nil, errors.New("file is gone") }
	})
	bare.Handle(KindRaft, echo)

	for _, c := range []struct {
		name string
		from *Transport
		to   string
		text string
	}{
		{"server of another CA", good, "stranger", "unknown authority"},
		{"client of another CA", stranger, "good", "the other side says"},
		{"expired server", good, "old", "expired"},
		{"expired client", old, "good", "the other side says"},
		{"no certificate to show", bare, "good", "file is gone"},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn, err := c.from.Dial(t.Context(), c.to, KindRaft, "")
			if err == nil {
				conn.Close()
			}
			if !errors.Is(err, ErrCertificate) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, want %q", err, c.text)
			}
		})
	}
	if conn, err := good.Dial(t.Context(), "bare", KindRaft, ""); err == nil {
		conn.Close()
		t.Error("connected to one without a certificate")
	}
}

// TestNoCertificate: TLS 1.3 tells a client only when it reads.
func TestNoCertificate(t *testing.T) {
	d := newTown(t)
	b := d.node("b")
	c := tls.Client(raw(t, b), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}})
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	err := c.HandshakeContext(t.Context())
	if err == nil {
		_, err = c.Read(make([]byte, 1))
	}
	if !alerted(err, 116) {
		t.Errorf("got %v, want certificate_required", err)
	}
	if got := classify(err); !errors.Is(got, ErrCertificate) {
		t.Errorf("it counts as %v", got)
	}
	if got := classify(x509.UnknownAuthorityError{}); !errors.Is(got, ErrUnreachable) {
		t.Errorf("got %v", got)
	}
}

// TestCertificatesThatChange: what is in the files holds at the next handshake, of
// transports that run; connections that are open stay.
func TestCertificatesThatChange(t *testing.T) {
	t.Parallel()
	d := newTown(t)
	dirs := map[string]string{}
	start := func(node string) *Transport {
		dir := filepath.Join(t.TempDir(), node)
		if err := pki.Issue(d.ca, dir, node, time.Now()); err != nil {
			t.Fatal(err)
		}
		dirs[node] = dir
		files := open(t, dir)
		tr := d.node(node, func(c *Config) { c.Certificate, c.CAs = files.Certificate, files.CAs })
		tr.Handle(KindRaft, echo)
		return tr
	}
	a, b := start("a"), start("b")
	both := func(when string, want error) {
		t.Helper()
		for to, from := range map[string]*Transport{"a": b, "b": a} {
			c, err := from.Dial(t.Context(), to, KindRaft, "")
			if err == nil {
				err = c.Close()
			}
			if !errors.Is(err, want) {
				t.Errorf("%s, to %s: got %v, want %v", when, to, err, want)
			}
		}
	}
	both("at first", nil)
	kept, err := a.Dial(t.Context(), "b", KindRaft, "")
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()

	issue := func(node, ca string, at time.Time) {
		t.Helper()
		if err := pki.IssueFor(ca, dirs[node], node, at, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	issue("a", d.ca, time.Now().Add(-2*time.Hour))
	both("a expired", ErrCertificate)
	issue("a", d.ca, time.Now())
	both("a has a new one", nil)

	// Another CA: for a while both are trusted, then certificates change, then only the new one is.
	next := t.TempDir()
	if err := pki.CreateCA(next, time.Now()); err != nil {
		t.Fatal(err)
	}
	trust := func(node string, cas ...string) {
		t.Helper()
		var all []byte
		for _, ca := range cas {
			text, err := os.ReadFile(filepath.Join(ca, "ca.crt"))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, text...)
		}
		if err := os.WriteFile(filepath.Join(dirs[node], "ca.crt"), all, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	trust("a", d.ca, next)
	trust("b", d.ca, next)
	both("both CAs are trusted", nil)
	issue("a", next, time.Now())
	trust("a", d.ca, next)
	both("a is of the new one", nil)
	issue("b", next, time.Now()) // trusts only that
	both("both are of the new one", nil)
	trust("a", d.ca)
	both("a does not trust it", ErrCertificate)
	trust("a", next)
	both("only the new one is trusted", nil)
	issue("a", d.ca, time.Now())
	trust("a", next)
	both("a is of the old one", ErrCertificate)

	if _, err := io.WriteString(kept, "x"); err != nil {
		t.Error(err)
	}
	if _, err := io.ReadFull(kept, make([]byte, 1)); err != nil {
		t.Errorf("a connection that was open: %v", err)
	}
}
