package server

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"time"
)

// CertificateFiles is a certificate and its key in files, taken anew when they
// change. A change that cannot be read or does not fit together is reported and
// the last good pair stays in use. Safe for concurrent use.
type CertificateFiles struct {
	certFile, keyFile string
	pair              followed[*tls.Certificate]
}

// LoadCertificate reads a PEM certificate chain and its key. A nil now is the
// system's clock.
func LoadCertificate(certFile, keyFile string, now func() time.Time, log *slog.Logger) (*CertificateFiles, error) {
	log = orDiscard(log)
	c := &CertificateFiles{certFile: certFile, keyFile: keyFile}
	c.pair.files, c.pair.read, c.pair.now = []string{certFile, keyFile}, c.read, now
	c.pair.changed = func(pair *tls.Certificate, err error) {
		if err != nil {
			log.Error("certificate not reloaded, the last good one stays in use", slog.String("file", certFile), slog.Any("error", err))
			return
		}
		log.Info("certificate reloaded", slog.String("file", certFile), slog.Time("notAfter", pair.Leaf.NotAfter))
	}
	if err := follow(&c.pair); err != nil {
		return nil, fmt.Errorf("server: certificate: %w", err)
	}
	return c, nil
}

// Certificate is a tls.Config's GetCertificate.
func (c *CertificateFiles) Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return c.pair.get(), nil
}

// NotAfter is when the certificate in use expires. It looks at the files like a
// handshake does.
func (c *CertificateFiles) NotAfter() time.Time { return c.pair.get().Leaf.NotAfter }

func (c *CertificateFiles) read() (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return nil, fmt.Errorf("%s with key %s: %w", c.certFile, c.keyFile, err)
	}
	if pair.Leaf == nil {
		return nil, fmt.Errorf("%s: no leaf", c.certFile)
	}
	return &pair, nil
}
