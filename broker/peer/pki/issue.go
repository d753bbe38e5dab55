package pki

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	"felix.dev/felix/broker/vfs"
)

const (
	nodeCert = "node.crt"
	nodeKey  = "node.key"
)

// NodeFor is how long a certificate of Issue is valid.
const NodeFor = 365 * 24 * time.Hour

// Issue makes a certificate for a node, or for every node with AnyNode, signed by
// the CA of caDir: dir/node.crt and dir/node.key, and a copy of ca.crt beside them. Those that
// are there are replaced: a broker that uses them takes the new ones at its next handshake.
func Issue(caDir, dir, node string, now time.Time) error {
	return IssueFor(caDir, dir, node, now, NodeFor)
}

// IssueFor is Issue with another validity. It ends with the CA's at the latest.
func IssueFor(caDir, dir, node string, now time.Time, validFor time.Duration) error {
	if err := issue(caDir, dir, node, now, validFor); err != nil {
		return fmt.Errorf("pki: certificate for node %q: %w", node, err)
	}
	return nil
}

func issue(caDir, dir, node string, now time.Time, validFor time.Duration) error {
	if node == "" {
		return errors.New("a node has a name")
	}
	ca, caPEM, caKey, err := loadCA(caDir)
	if err != nil {
		return err
	}
	key, keyPEM, err := newKey()
	if err != nil {
		return err
	}
	until := now.Add(validFor)
	if until.After(ca.NotAfter) {
		until = ca.NotAfter
	}
	cert := &x509.Certificate{
		Subject:               pkix.Name{CommonName: node},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              until,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
	}
	if node == AnyNode || dnsName(node) {
		cert.DNSNames = []string{node}
	}
	if node != AnyNode {
		cert.URIs = []*url.URL{nodeURI(node)}
	}
	certPEM, err := sign(cert, ca, key.Public(), caKey)
	if err != nil {
		return err
	}
	if err := vfs.MkdirAllSync(vfs.OS, dir, 0o700); err != nil {
		return err
	}
	if err := vfs.WriteFileAtomic(vfs.OS, filepath.Join(dir, nodeKey), keyPEM, 0o600); err != nil {
		return err
	}
	if err := vfs.WriteFileAtomic(vfs.OS, filepath.Join(dir, nodeCert), certPEM, 0o644); err != nil {
		return err
	}
	if filepath.Clean(dir) == filepath.Clean(caDir) {
		return nil
	}
	return vfs.WriteFileAtomic(vfs.OS, filepath.Join(dir, caCert), caPEM, 0o644)
}

// dnsName says whether x509 may write node as a DNS name.
func dnsName(node string) bool {
	for _, r := range node {
		if r <= ' ' || r > '~' || r == '*' || r == '/' || r == ':' || r == '@' {
			return false
		}
	}
	return len(node) <= 253
}
