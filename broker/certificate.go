package broker

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"time"

	"felix.dev/felix/broker/admin"
	"felix.dev/felix/broker/server"
)

// certificateSoon is how long before its certificate expires a broker says so.
const certificateSoon = 21 * 24 * time.Hour

func (b *Broker) openCertificate(context.Context) error {
	files := b.cfg.TLS
	if files.CertFile == "" {
		made, err := server.EnsureSelfSigned(b.cfg.path(tlsName), b.certificateHosts(), time.Now())
		if err != nil {
			return err
		}
		files = TLS{CertFile: made.CertFile, KeyFile: made.KeyFile}
		if made.Made {
			b.log.Warn("made a certificate that signs itself: give it to clients as their file of CA certificates, or configure one of your own",
				slog.String("file", made.CertFile))
		}
	}
	b.caFile = files.CertFile
	var err error
	if b.cert, err = server.LoadCertificate(files.CertFile, files.KeyFile, nil, b.log); err != nil {
		return err
	}
	if check := b.certificateCheck(time.Now()); check.Message != "" {
		b.log.Warn("certificate "+check.Message, slog.String("file", files.CertFile))
	}
	return nil
}

// openClientAuth reads who signs the certificates of clients.
func (b *Broker) openClientAuth(cfg *server.Config) (err error) {
	if cfg.ClientAuth, err = b.cfg.TLS.clientAuth(); err != nil || cfg.ClientAuth == server.ClientAuthNone {
		return err
	}
	cas, err := server.LoadClientCAs(b.cfg.TLS.ClientCAFile, nil, b.log)
	if err != nil {
		return err
	}
	cfg.ClientCAs = cas.Pool
	return nil
}

// certificateHosts are the names that clients may know this broker by.
func (b *Broker) certificateHosts() (hosts []string) {
	hosts = append(hosts, hostname())
	for _, addr := range []string{b.cfg.Advertise, b.cfg.Listen} {
		host, _, err := net.SplitHostPort(addr)
		if err != nil || host == "" {
			continue
		}
		if ip := net.ParseIP(host); ip == nil || !ip.IsUnspecified() {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// certificateCheck says that the certificate expires soon, or has. Who is connected
// goes on with one that has, so that this takes nobody out of service either.
func (b *Broker) certificateCheck(now time.Time) admin.Check {
	c := admin.Check{Name: "certificate", Ready: true}
	at := b.cert.NotAfter()
	switch left := at.Sub(now); {
	case left <= 0:
		c.Message = fmt.Sprintf("expired at %s, no client can connect: replace the files, they are taken at once", at.UTC().Format(time.RFC3339))
	case left < certificateSoon:
		c.Message = fmt.Sprintf("expires at %s: replace the files, they are taken at once", at.UTC().Format(time.RFC3339))
	}
	return c
}
