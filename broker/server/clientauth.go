package server

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"time"
)

// ClientAuth says whether clients present a certificate. It is for who may connect:
// what a client may do is a matter of its token all the same.
type ClientAuth uint8

const (
	// ClientAuthNone asks for none.
	ClientAuthNone ClientAuth = iota
	// ClientAuthOptional asks for one, and refuses one that is not good.
	ClientAuthOptional
	// ClientAuthRequired refuses who presents none as well.
	ClientAuthRequired
)

var clientAuthNames = [...]string{"None", "Optional", "Required"}

// String is the name in configurations.
func (a ClientAuth) String() string { return clientAuthNames[min(a, ClientAuthRequired)] }

// ParseClientAuth reads the name of a mode.
func ParseClientAuth(s string) (ClientAuth, bool) {
	for i, name := range clientAuthNames {
		if name == s {
			return ClientAuth(i), true
		}
	}
	return 0, false
}

func (a ClientAuth) tls() tls.ClientAuthType {
	return [...]tls.ClientAuthType{tls.NoClientCert, tls.VerifyClientCertIfGiven, tls.RequireAndVerifyClientCert}[min(a, ClientAuthRequired)]
}

// ClientCAs are the certificates of a file that sign those of clients, taken anew when
// it changes. Connections that are open outlive a change. Safe for concurrent use.
type ClientCAs struct {
	pool followed[*x509.CertPool]
}

// LoadClientCAs reads PEM certificates. A nil now is the system's clock.
func LoadClientCAs(file string, now func() time.Time, log *slog.Logger) (*ClientCAs, error) {
	log = orDiscard(log)
	c := &ClientCAs{}
	c.pool.files, c.pool.now = []string{file}, now
	c.pool.read = func() (*x509.CertPool, error) {
		b, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(b) {
			return nil, fmt.Errorf("%s: no certificate", file)
		}
		return pool, nil
	}
	c.pool.changed = func(_ *x509.CertPool, err error) {
		if err != nil {
			log.Error("CA certificates of clients not reloaded, the last good ones stay in use", slog.String("file", file), slog.Any("error", err))
			return
		}
		log.Info("CA certificates of clients reloaded", slog.String("file", file))
	}
	if err := follow(&c.pool); err != nil {
		return nil, fmt.Errorf("server: CA certificates of clients: %w", err)
	}
	return c, nil
}

// Pool is what certificates of clients are held against now.
func (c *ClientCAs) Pool() *x509.CertPool { return c.pool.get() }
