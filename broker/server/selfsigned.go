package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"felix.dev/felix/broker/vfs"
)

const (
	selfSignedFor   = 2 * 365 * 24 * time.Hour
	selfSignedRenew = 30 * 24 * time.Hour
)

// SelfSigned is a certificate that a broker made for itself. Clients trust it by
// using CertFile as their file of CA certificates.
type SelfSigned struct {
	CertFile, KeyFile string
	// Made is set if the files were written just now: clients that trust an earlier
	// certificate need the new file.
	Made bool
}

// EnsureSelfSigned gives the certificate in dir (tls.crt, tls.key) if it names all
// of hosts and is good for a month to come, and else makes one. The published
// clients' verifier takes a self-signed leaf only if it is not a CA and names its
// host as an alternative name; localhost and the loopback addresses are always there.
func EnsureSelfSigned(dir string, hosts []string, now time.Time) (SelfSigned, error) {
	s := SelfSigned{CertFile: filepath.Join(dir, "tls.crt"), KeyFile: filepath.Join(dir, "tls.key")}
	hosts = slices.Concat([]string{"localhost", "127.0.0.1", "::1"}, hosts)
	fits, err := s.fits(hosts, now)
	if err != nil || fits {
		return s, err
	}
	certPEM, keyPEM, err := makeSelfSigned(hosts, now)
	if err != nil {
		return s, fmt.Errorf("server: make certificate: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return s, fmt.Errorf("server: make certificate: %w", err)
	}
	err = errors.Join(
		vfs.WriteFileAtomic(vfs.OS, s.KeyFile, keyPEM, 0o600),
		vfs.WriteFileAtomic(vfs.OS, s.CertFile, certPEM, 0o644),
	)
	if err != nil {
		return s, fmt.Errorf("server: write certificate: %w", err)
	}
	s.Made = true
	return s, nil
}

// fits says whether what is on disk can be used. Files that are there but cannot be
// read are an error: they may be somebody's.
func (s SelfSigned) fits(hosts []string, now time.Time) (bool, error) {
	for _, name := range []string{s.CertFile, s.KeyFile} {
		if there, err := exists(name); err != nil || !there {
			return false, err
		}
	}
	pair, err := tls.LoadX509KeyPair(s.CertFile, s.KeyFile)
	if err != nil {
		return false, fmt.Errorf("server: certificate %s: %w; remove it to have a new one made", s.CertFile, err)
	}
	leaf := pair.Leaf
	if now.Before(leaf.NotBefore) || now.Add(selfSignedRenew).After(leaf.NotAfter) {
		return false, nil
	}
	unnamed := func(host string) bool { return host != "" && leaf.VerifyHostname(host) != nil }
	return !slices.ContainsFunc(hosts, unnamed), nil
}

func exists(name string) (bool, error) {
	_, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("server: certificate: %w", err)
	}
	return true, nil
}

func makeSelfSigned(hosts []string, now time.Time) (certPEM, keyPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, nil, err
	}
	leaf := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: "felix broker"},
		NotBefore:             now.Add(-time.Hour), // clocks differ
		NotAfter:              now.Add(selfSignedFor),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	for _, h := range hosts {
		ip := net.ParseIP(h)
		switch {
		case h == "":
		case ip != nil:
			if !slices.ContainsFunc(leaf.IPAddresses, ip.Equal) {
				leaf.IPAddresses = append(leaf.IPAddresses, ip)
			}
		case !slices.Contains(leaf.DNSNames, h):
			leaf.DNSNames = append(leaf.DNSNames, h)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, leaf, key.Public(), key)
	if err != nil {
		return nil, nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), nil
}
