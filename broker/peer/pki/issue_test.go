package pki

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestIssue(t *testing.T) {
	now := time.Now()
	ca := t.TempDir()
	if err := CreateCA(ca, now); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		node     string
		validFor time.Duration
		names    []string
		not      []string
	}{
		{node: "felix-0", validFor: NodeFor, names: []string{"felix-0"}, not: []string{"felix-1", "FELIX-0", "", "node/felix-0", AnyNode}},
		{node: "Größe 1/2", validFor: time.Hour, names: []string{"Größe 1/2"}, not: []string{"1/2", "Größe 1"}},
		{node: AnyNode, validFor: time.Hour, names: []string{"felix-0", AnyNode}, not: []string{""}},
		{node: "*", validFor: 100 * NodeFor, names: []string{"*"}, not: []string{"a"}},
	} {
		t.Run(c.node, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "deep", "below")
			if err := IssueFor(ca, dir, c.node, now, c.validFor); err != nil {
				t.Fatal(err)
			}
			files, err := Open(In(dir), nil)
			if err != nil {
				t.Fatal(err)
			}
			pair, err := files.Certificate()
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range c.names {
				if !Names(pair.Leaf, n) {
					t.Errorf("does not name %q: %v %v", n, pair.Leaf.DNSNames, pair.Leaf.URIs)
				}
			}
			for _, n := range c.not {
				if Names(pair.Leaf, n) {
					t.Errorf("names %q: %v %v", n, pair.Leaf.DNSNames, pair.Leaf.URIs)
				}
			}
			for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
				at := now.Add(min(c.validFor, caFor) - time.Minute)
				opts := x509.VerifyOptions{Roots: files.CAs(), CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{usage}}
				if _, err := pair.Leaf.Verify(opts); err != nil {
					t.Error(err)
				}
				opts.CurrentTime = now.Add(c.validFor + time.Minute)
				if _, err := pair.Leaf.Verify(opts); err == nil {
					t.Error("valid for ever")
				}
			}
			for name, perm := range map[string]fs.FileMode{"node.key": 0o600, "node.crt": 0o644, "ca.crt": 0o644} {
				if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != perm {
					t.Errorf("%s: %v, %v, want %v", name, info.Mode(), err, perm)
				}
			}
			if _, err := os.Stat(filepath.Join(dir, "ca.key")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the CA's key is where a node's files are: %v", err)
			}
		})
	}
	if err := Issue(ca, t.TempDir(), "", now); err == nil {
		t.Error("issued for nobody")
	}
}

func TestCAIsMadeOnce(t *testing.T) {
	for _, left := range []string{"ca.crt", "ca.key"} {
		dir := t.TempDir()
		if err := CreateCA(dir, time.Now()); err != nil {
			t.Fatal(err)
		}
		text := read(t, filepath.Join(dir, left))
		for _, name := range []string{"ca.crt", "ca.key"} {
			if name != left {
				if err := os.Remove(filepath.Join(dir, name)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := CreateCA(dir, time.Now()); !errors.Is(err, fs.ErrExist) {
			t.Errorf("with %s there: %v", left, err)
		}
		if string(read(t, filepath.Join(dir, left))) != string(text) {
			t.Errorf("%s was replaced", left)
		}
		if err := Issue(dir, t.TempDir(), "a", time.Now()); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("issued with half a CA: %v", err)
		}
	}
}

// TestIssueAfterChangeOfCA: ca.crt may hold older CAs too; the one that the key belongs to signs.
func TestIssueAfterChangeOfCA(t *testing.T) {
	older, ca := t.TempDir(), t.TempDir()
	for _, dir := range []string{older, ca} {
		if err := CreateCA(dir, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	newer := read(t, filepath.Join(ca, "ca.crt"))
	write(t, filepath.Join(ca, "ca.crt"), append(read(t, filepath.Join(older, "ca.crt")), newer...))
	if err := Issue(ca, ca, "a", time.Now()); err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(ca, "node.crt"), filepath.Join(ca, "node.key"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(newer)
	if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: pool}); err != nil {
		t.Error(err)
	}

	write(t, filepath.Join(ca, "ca.crt"), read(t, filepath.Join(older, "ca.crt")))
	if err := Issue(ca, ca, "a", time.Now()); err == nil || !strings.Contains(err.Error(), "belongs to no certificate") {
		t.Errorf("issued with a key of another CA: %v", err)
	}
}

func TestDamagedCA(t *testing.T) {
	for _, c := range []struct{ file, text, want string }{
		{"ca.crt", "", "no certificate"},
		{"ca.crt", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "ca.crt"},
		{"ca.key", "", "no private key"},
		{"ca.key", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "ca.key"},
	} {
		dir := t.TempDir()
		if err := CreateCA(dir, time.Now()); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, c.file), []byte(c.text))
		if err := Issue(dir, t.TempDir(), "a", time.Now()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %q: got %v, want %q", c.file, c.text, err, c.want)
		}
	}
}
