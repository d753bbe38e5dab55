package settings

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"

	"felix.dev/felix/broker/admin"
	"felix.dev/felix/client"
)

// Client makes the configuration of a client. It fails with a *MissingError if something needed is not set.
//
// A token from a context file is read anew when the broker refuses it: a development broker that has started with
// another key has written another one.
func (s *Settings) Client(log *slog.Logger) (client.Config, error) {
	if err := s.missing("broker address", "tenant", "token"); err != nil {
		return client.Config{}, err
	}
	var addrs []string
	for addr := range strings.SplitSeq(s.Addr.Value, ",") {
		if addr = strings.TrimSpace(addr); addr != "" {
			addrs = append(addrs, addr)
		}
	}
	cfg := client.Config{
		Addrs:      addrs,
		Tenant:     s.Tenant.Value,
		Token:      s.Token.Value,
		CAFile:     s.CAFile.Value,
		ServerName: s.ServerName,
		Log:        log,
	}
	if s.Context != "" && s.Token.From == s.Context {
		cfg.TokenSource = func(context.Context) (string, error) {
			file, err := ReadContextFile(s.Context)
			if err != nil {
				return "", err
			}
			return file.Token, nil
		}
	}
	return cfg, nil
}

// Admin makes a client of the admin: with several addresses, of the first broker that can be reached. It fails with a *MissingError if something needed is not set. Close its idle
// connections with HTTP.CloseIdleConnections.
func (s *Settings) Admin() (*admin.Client, error) {
	if err := s.missing("admin address", "token"); err != nil {
		return nil, err
	}
	urls, err := adminURLs(s.AdminAddr.Value)
	if err != nil {
		return nil, fmt.Errorf("admin address %q of %s: %w", s.AdminAddr.Value, s.AdminAddr.From, err)
	}
	base := urls[0]
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment}
	if s.CAFile.Value != "" && strings.HasPrefix(base, "https:") {
		pem, err := os.ReadFile(s.CAFile.Value)
		if err != nil {
			return nil, fmt.Errorf("certificates to trust: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("certificates to trust: there is none in %s", s.CAFile.Value)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, ServerName: s.ServerName, MinVersion: tls.VersionTLS12}
	}
	client := &admin.Client{BaseURL: base, Token: s.Token.Value, HTTP: &http.Client{Transport: transport}}
	if len(urls) > 1 {
		if client.HTTP.Transport, err = newAnyBroker(transport, urls); err != nil {
			return nil, fmt.Errorf("admin address %q of %s: %w", s.AdminAddr.Value, s.AdminAddr.From, err)
		}
	}
	return client, nil
}
