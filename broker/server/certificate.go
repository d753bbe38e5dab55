package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// certificateCheck is how often at most handshakes look whether the files changed.
const certificateCheck = time.Second

// CertificateFiles is a certificate and its key in files, taken anew when they
// change. A change that cannot be read or does not fit together is reported and
// the last good pair stays in use. Safe for concurrent use.
type CertificateFiles struct {
	certFile, keyFile string
	now               func() time.Time
	log               *slog.Logger

	mu      sync.Mutex
	checked time.Time
	seen    [2]fileMark
	pair    *tls.Certificate // never nil
}

// fileMark changes when a file is written or replaced.
type fileMark struct {
	info os.FileInfo
}

func markOf(name string) (fileMark, error) {
	info, err := os.Stat(name)
	return fileMark{info}, err
}

func (m fileMark) same(o fileMark) bool {
	if m.info == nil || o.info == nil {
		return m.info == o.info
	}
	return os.SameFile(m.info, o.info) && m.info.ModTime().Equal(o.info.ModTime()) && m.info.Size() == o.info.Size()
}

// LoadCertificate reads a PEM certificate chain and its key. A nil now is the
// system's clock.
func LoadCertificate(certFile, keyFile string, now func() time.Time, log *slog.Logger) (*CertificateFiles, error) {
	if now == nil {
		now = time.Now
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	c := &CertificateFiles{certFile: certFile, keyFile: keyFile, now: now, log: log}
	seen, err := c.marks()
	if err != nil {
		return nil, err
	}
	if c.pair, err = c.read(); err != nil {
		return nil, err
	}
	c.seen, c.checked = seen, now()
	return c, nil
}

// Certificate is a tls.Config's GetCertificate.
func (c *CertificateFiles) Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.now(); now.Sub(c.checked) >= certificateCheck || now.Before(c.checked) {
		c.checked = now
		c.refresh()
	}
	return c.pair, nil
}

// NotAfter is when the certificate in use expires. It looks at the files like a
// handshake does.
func (c *CertificateFiles) NotAfter() time.Time {
	pair, _ := c.Certificate(nil) // it has no error
	return pair.Leaf.NotAfter
}

// refresh takes the files anew if they changed. The caller holds mu.
func (c *CertificateFiles) refresh() {
	seen, err := c.marks()
	if seen[0].same(c.seen[0]) && seen[1].same(c.seen[1]) {
		return
	}
	c.seen = seen
	var pair *tls.Certificate
	if err == nil {
		pair, err = c.read()
	}
	if err != nil {
		c.log.Error("certificate not reloaded, the last good one stays in use",
			slog.String("file", c.certFile), slog.Any("error", err))
		return
	}
	c.pair = pair
	c.log.Info("certificate reloaded", slog.String("file", c.certFile), slog.Time("notAfter", pair.Leaf.NotAfter))
}

func (c *CertificateFiles) marks() ([2]fileMark, error) {
	cert, certErr := markOf(c.certFile)
	key, keyErr := markOf(c.keyFile)
	if err := errors.Join(certErr, keyErr); err != nil {
		return [2]fileMark{}, fmt.Errorf("server: certificate: %w", err)
	}
	return [2]fileMark{cert, key}, nil
}

func (c *CertificateFiles) read() (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return nil, fmt.Errorf("server: certificate %s with key %s: %w", c.certFile, c.keyFile, err)
	}
	if pair.Leaf == nil {
		return nil, fmt.Errorf("server: certificate %s: no leaf", c.certFile)
	}
	return &pair, nil
}
