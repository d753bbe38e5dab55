package pki

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"
)

// Paths are the files that a broker reads.
type Paths struct {
	CA   string // certificates of the CAs that are trusted, one or more
	Cert string // the node's certificate, and those between it and the CA
	Key  string // the certificate's key
}

// In names the files of a directory as Issue writes them.
func In(dir string) Paths {
	return Paths{CA: filepath.Join(dir, caCert), Cert: filepath.Join(dir, nodeCert), Key: filepath.Join(dir, nodeKey)}
}

// Files are certificates in files, read again whenever somebody asks. Safe for
// concurrent use.
type Files struct {
	paths Paths
	log   *slog.Logger

	mu   sync.Mutex
	pair followed[*tls.Certificate]
	cas  followed[*x509.CertPool]
}

// followed is something made of a file's text.
type followed[T any] struct {
	good    []byte // the text that value was made of; nil: there is none yet
	value   T
	trouble string // that was reported last
}

// Open reads the files for the first time, when an error is an error. log may be nil.
func Open(paths Paths, log *slog.Logger) (*Files, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	f := &Files{paths: paths, log: log}
	_, pairErr := f.readPair()
	_, casErr := f.readCAs()
	if err := errors.Join(pairErr, casErr); err != nil {
		return nil, fmt.Errorf("pki: %w", err)
	}
	return f, nil
}

// Certificate is what the node shows its peers. It is for peer.Config.
func (f *Files) Certificate() (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	changed, err := f.readPair()
	f.report("certificate", f.paths.Cert, changed, err, &f.pair.trouble)
	return f.pair.value, nil
}

// CAs are those that are trusted. It is for peer.Config.
func (f *Files) CAs() *x509.CertPool {
	f.mu.Lock()
	defer f.mu.Unlock()
	changed, err := f.readCAs()
	f.report("trusted CAs", f.paths.CA, changed, err, &f.cas.trouble)
	return f.cas.value
}

// NotAfter is when the certificate expires that the node shows at present.
func (f *Files) NotAfter() time.Time {
	c, err := f.Certificate()
	if err != nil || c.Leaf == nil {
		return time.Time{}
	}
	return c.Leaf.NotAfter
}

// Names says whether the certificate names a node: one that does not is of no use to it.
func (f *Files) Names(node string) bool {
	c, err := f.Certificate()
	return err == nil && c.Leaf != nil && Names(c.Leaf, node)
}

// report tells of a change, good or bad, once.
func (f *Files) report(what, file string, changed bool, err error, last *string) {
	switch {
	case err != nil && err.Error() != *last:
		*last = err.Error()
		f.log.Error(what+" not reloaded, the last good ones stay in use", slog.String("file", file), slog.Any("error", err))
	case err == nil && (changed || *last != ""):
		*last = ""
		f.log.Info(what+" reloaded", slog.String("file", file))
	}
}

// readPair looks at the files. The caller holds mu, or is alone.
func (f *Files) readPair() (changed bool, err error) {
	cert, err := readFile(f.paths.Cert)
	if err != nil {
		return false, fmt.Errorf("certificate: %w", err)
	}
	key, err := readFile(f.paths.Key)
	if err != nil {
		return false, fmt.Errorf("key of the certificate: %w", err)
	}
	return f.pair.take(bytes.Join([][]byte{cert, key}, []byte{0}), func() (*tls.Certificate, error) {
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("certificate %s with key %s: %w", f.paths.Cert, f.paths.Key, err)
		}
		return &pair, nil
	})
}

// readCAs is readPair of the CAs.
func (f *Files) readCAs() (changed bool, err error) {
	text, err := readFile(f.paths.CA)
	if err != nil {
		return false, fmt.Errorf("trusted CAs: %w", err)
	}
	return f.cas.take(text, func() (*x509.CertPool, error) {
		pool, err := parsePool(text)
		if err != nil {
			return nil, fmt.Errorf("trusted CAs %s: %w", f.paths.CA, err)
		}
		return pool, nil
	})
}

// take makes the value anew if the text is another.
func (f *followed[T]) take(text []byte, parse func() (T, error)) (changed bool, err error) {
	if f.good != nil && bytes.Equal(text, f.good) {
		return false, nil
	}
	value, err := parse()
	if err != nil {
		return false, err
	}
	f.good, f.value = text, value
	return true, nil
}
