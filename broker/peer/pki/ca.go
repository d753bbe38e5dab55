package pki

import (
	"crypto"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"felix.dev/felix/broker/vfs"
)

const (
	caCert = "ca.crt"
	caKey  = "ca.key"

	// caFor is how long a CA signs: changing it takes every broker.
	caFor = 10 * 365 * 24 * time.Hour
	// clockSkew is by how much the clocks of two brokers may differ for a certificate
	// that was made just now.
	clockSkew = time.Hour
)

// CreateCA makes a CA for a new cluster: dir/ca.crt, which every broker is given,
// and dir/ca.key, which none needs. A CA that is there is never replaced: the error
// wraps fs.ErrExist.
func CreateCA(dir string, now time.Time) error {
	certFile, keyFile := filepath.Join(dir, caCert), filepath.Join(dir, caKey)
	for _, name := range []string{certFile, keyFile} {
		if _, err := os.Lstat(name); err == nil {
			return fmt.Errorf("pki: %s: %w: a cluster's CA is made once", name, fs.ErrExist)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("pki: new CA: %w", err)
		}
	}
	key, keyPEM, err := newKey()
	if err != nil {
		return fmt.Errorf("pki: new CA: %w", err)
	}
	ca := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "felix cluster CA"},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.Add(caFor),
		KeyUsage:              x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
	certPEM, err := sign(ca, ca, key.Public(), key)
	if err != nil {
		return fmt.Errorf("pki: new CA: %w", err)
	}
	// The key first: a certificate without its key would be a CA that signs nothing.
	if err := vfs.MkdirAllSync(vfs.OS, dir, 0o700); err != nil {
		return fmt.Errorf("pki: new CA: %w", err)
	}
	if err := vfs.WriteFileAtomic(vfs.OS, keyFile, keyPEM, 0o600); err != nil {
		return fmt.Errorf("pki: new CA: %w", err)
	}
	if err := vfs.WriteFileAtomic(vfs.OS, certFile, certPEM, 0o644); err != nil {
		return fmt.Errorf("pki: new CA: %w", err)
	}
	return nil
}

// loadCA reads what CreateCA wrote. pemText is the certificate as it is in the file.
func loadCA(dir string) (cert *x509.Certificate, pemText []byte, key crypto.Signer, err error) {
	certFile, keyFile := filepath.Join(dir, caCert), filepath.Join(dir, caKey)
	pemText, err = readFile(certFile)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("CA: %w", err)
	}
	certs, err := parseCertificates(pemText)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("CA %s: %w", certFile, err)
	}
	keyText, err := readFile(keyFile)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("key of the CA: %w", err)
	}
	key, err = parseKey(keyText)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("key of the CA %s: %w", keyFile, err)
	}
	// The file may hold an older CA too, while one takes over from the other.
	for _, c := range certs {
		if public, ok := c.PublicKey.(interface{ Equal(x crypto.PublicKey) bool }); ok && public.Equal(key.Public()) {
			return c, pemText, key, nil
		}
	}
	return nil, nil, nil, fmt.Errorf("%s belongs to no certificate of %s", keyFile, certFile)
}
