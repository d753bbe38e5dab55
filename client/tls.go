package client

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/netip"
	"os"
)

// alpn is the name of the protocol in the TLS handshake.
const alpn = "felix/1"

// newTLS makes the configuration that all connections share, except for the server name.
func newTLS(cfg *Config) (*tls.Config, error) {
	roots := cfg.RootCAs
	if roots == nil && cfg.CAFile != "" {
		pem, err := os.ReadFile(cfg.CAFile)
		if err != nil {
			return nil, fmt.Errorf("felix: read CA file: %w", err)
		}
		roots = x509.NewCertPool()
		if !roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("felix: CA file %s holds no certificate in PEM form", cfg.CAFile)
		}
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		NextProtos: []string{alpn},
		RootCAs:    roots,
		// Resumption spares the certificate check when many connections come back at once.
		ClientSessionCache: tls.NewLRUClientSessionCache(0),
	}, nil
}

// serverName is the name that the certificate at addr is checked against.
func serverName(configured, addr string, learned bool) string {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		host = addr
	}
	_, err = netip.ParseAddr(host)
	isName := err != nil
	switch {
	case isName && (learned || configured == ""):
		return host
	case configured != "":
		return configured
	}
	return DefaultName
}
