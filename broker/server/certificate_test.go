package server

import (
	"crypto/x509"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestSelfSigned(t *testing.T) {
	now := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	dir := filepath.Join(t.TempDir(), "tls")
	s, err := EnsureSelfSigned(dir, []string{"broker-0.felix", "10.1.2.3", ""}, now)
	if err != nil || !s.Made {
		t.Fatalf("made %v, %v", s.Made, err)
	}
	files, err := LoadCertificate(s.CertFile, s.KeyFile, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := files.Certificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	leaf := pair.Leaf
	pemBytes, err := os.ReadFile(s.CertFile)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pemBytes)
	for _, name := range []string{"localhost", "127.0.0.1", "broker-0.felix", "10.1.2.3"} {
		if _, err := leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots, CurrentTime: now}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if leaf.IsCA || leaf.Version != 3 || len(leaf.ExtKeyUsage) != 1 || leaf.ExtKeyUsage[0] != x509.ExtKeyUsageServerAuth {
		t.Errorf("CA %v, version %d, usages %v", leaf.IsCA, leaf.Version, leaf.ExtKeyUsage)
	}
	if !leaf.IPAddresses[0].Equal(net.IPv4(127, 0, 0, 1)) {
		t.Errorf("addresses %v", leaf.IPAddresses)
	}
	if info, err := os.Stat(s.KeyFile); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("key file %v, %v", info.Mode(), err)
	}

	for _, tt := range []struct {
		name  string
		hosts []string
		now   time.Time
		made  bool
	}{
		{"the same hosts", []string{"broker-0.felix"}, now.Add(time.Hour), false},
		{"a new host", []string{"broker-1.felix"}, now.Add(time.Hour), true},
		{"about to expire", []string{"broker-1.felix"}, now.Add(selfSignedFor - selfSignedRenew + 2*time.Hour), true},
	} {
		s, err := EnsureSelfSigned(dir, tt.hosts, tt.now)
		if err != nil || s.Made != tt.made {
			t.Errorf("%s: made %v, %v", tt.name, s.Made, err)
		}
	}
	if err := os.WriteFile(s.CertFile, []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := EnsureSelfSigned(dir, nil, now); err == nil {
		t.Error("a damaged file was replaced without a word")
	}
}

func TestCertificateReload(t *testing.T) {
	now := time.Now()
	lines := newLogLines()
	old, fresh := selfSignedIn(t), selfSignedIn(t)
	files, err := LoadCertificate(old.CertFile, old.KeyFile, func() time.Time { return now }, slog.New(lines))
	if err != nil {
		t.Fatal(err)
	}
	serial := func() string {
		pair, err := files.Certificate(nil)
		if err != nil {
			t.Fatal(err)
		}
		return pair.Leaf.SerialNumber.String()
	}
	first := serial()
	move := func(from, to string) {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	// The certificate is replaced before its key: for a moment they do not fit.
	move(fresh.CertFile, old.CertFile)
	if serial() != first {
		t.Error("looked before a second had passed")
	}
	now = now.Add(2 * time.Second)
	if serial() != first {
		t.Error("took a certificate without its key")
	}
	now = now.Add(2 * time.Second)
	serial()
	if n := lines.count(slog.LevelError); n != 1 {
		t.Errorf("%d errors logged for one change", n)
	}
	move(fresh.KeyFile, old.KeyFile)
	now = now.Add(2 * time.Second)
	second := serial()
	if second == first {
		t.Error("the new pair was not taken")
	}
	if err := os.Remove(old.CertFile); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		now = now.Add(2 * time.Second)
		if serial() != second {
			t.Error("the last good pair was lost")
		}
	}
	if n := lines.count(slog.LevelError); n != 2 {
		t.Errorf("%d errors logged", n)
	}
	if _, err := LoadCertificate(old.CertFile, old.KeyFile, nil, nil); err == nil {
		t.Error("a missing file was loaded")
	}
}
