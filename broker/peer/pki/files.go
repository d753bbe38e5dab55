package pki

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"time"
)

var errSkeleton = errors.New("pki: not there yet")

// Paths are the files that a broker reads.
type Paths struct {
	CA   string // certificates of CAs that are trusted, one or more
	Cert string // the node's certificate chain
	Key  string // its key
}

// In names the files of a directory as Issue writes them.
func In(dir string) Paths { return Paths{} }

// Files are certificates in files, read again when they change.
type Files struct{}

// Open reads the files; log may be nil.
func Open(paths Paths, log *slog.Logger) (*Files, error) { return nil, errSkeleton }

// Certificate is the node's certificate, for peer.Config.
func (f *Files) Certificate() (*tls.Certificate, error) { return nil, errSkeleton }

// CAs are the CAs that are trusted, for peer.Config.
func (f *Files) CAs() *x509.CertPool { return nil }

// CreateCA makes a CA for a new cluster: dir/ca.crt and dir/ca.key. Files that are
// there are never replaced.
func CreateCA(dir string, now time.Time) error { return errSkeleton }

// Issue makes a certificate for a node with the CA of caDir: dir/node.crt and dir/node.key, and dir/ca.crt beside them.
// An older certificate of the node is replaced.
func Issue(caDir, dir, node string, now time.Time) error { return errSkeleton }
