package peer

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"

	"felix.dev/felix/broker/peer/pki"
)

// protocol is what both sides agree on before they say anything (ALPN): a server for
// something else at the address is found out by it.
const protocol = "felix-peer/1"

// tlsConfig is that of one side. node is who must be at the other one ("": anybody of
// the cluster).
func (t *Transport) tlsConfig(usage x509.ExtKeyUsage, node string) *tls.Config {
	own := func() (*tls.Certificate, error) {
		c, err := t.cfg.Certificate()
		if err == nil && c == nil {
			err = errors.New("there is none")
		}
		if err != nil {
			return nil, fmt.Errorf("%w: own certificate: %w", ErrCertificate, err)
		}
		return c, nil
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		NextProtos: []string{protocol},
		ClientAuth: tls.RequireAnyClientCert,
		// Certificates name nodes and not hosts, so verifying them is verify's.
		InsecureSkipVerify: true, //nolint:gosec // VerifyConnection checks the whole chain and the node's name
		VerifyConnection: func(cs tls.ConnectionState) error {
			return t.verify(cs, usage, node)
		},
		GetCertificate:       func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return own() },
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return own() },
		// A session that is taken up again would not see what is trusted now.
		SessionTicketsDisabled: true,
	}
}

// verify takes the certificate of the other side, or says why not.
func (t *Transport) verify(cs tls.ConnectionState, usage x509.ExtKeyUsage, node string) error {
	if cs.NegotiatedProtocol != protocol {
		return fmt.Errorf("%w: it did not choose %s", ErrProtocol, protocol)
	}
	if len(cs.PeerCertificates) == 0 {
		return fmt.Errorf("%w: it showed none", ErrCertificate)
	}
	leaf := cs.PeerCertificates[0]
	roots := t.cfg.CAs()
	if roots == nil {
		roots = x509.NewCertPool() // nil would be the system's
	}
	opts := x509.VerifyOptions{
		Roots: roots, Intermediates: x509.NewCertPool(), KeyUsages: []x509.ExtKeyUsage{usage},
	}
	for _, c := range cs.PeerCertificates[1:] {
		opts.Intermediates.AddCert(c)
	}
	if _, err := leaf.Verify(opts); err != nil {
		return fmt.Errorf("%w: %w", ErrCertificate, err)
	}
	if node != "" && !pki.Names(leaf, node) {
		return fmt.Errorf("%w: it does not name node %q but %v %v", ErrCertificate, node, leaf.DNSNames, leaf.URIs)
	}
	return nil
}

// certificateAlerts are what the other side's TLS says of a certificate that it does not take.
var certificateAlerts = []tls.AlertError{
	42,  // bad_certificate
	43,  // unsupported_certificate
	44,  // certificate_revoked
	45,  // certificate_expired
	46,  // certificate_unknown
	48,  // unknown_ca
	116, // certificate_required
}

const noProtocolAlert = tls.AlertError(120) // no_application_protocol

// classify wraps what went wrong before a connection was open in the error that
// says what it means.
func classify(err error) error {
	var record tls.RecordHeaderError
	switch {
	case errors.Is(err, ErrCertificate), errors.Is(err, ErrProtocol), errors.Is(err, ErrUnreachable):
		return err
	case slices.ContainsFunc(certificateAlerts, func(a tls.AlertError) bool { return alerted(err, a) }):
		return fmt.Errorf("%w: the other side says: %w", ErrCertificate, err)
	case alerted(err, noProtocolAlert), errors.As(err, &record):
		return fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	return fmt.Errorf("%w: %w", ErrUnreachable, err)
}

// alerted says whether the other side ended TLS with an alert. Package tls does not
// export the type of those that come over TCP, but it says the same of both.
func alerted(err error, alert tls.AlertError) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error" && op.Err != nil && op.Err.Error() == alert.Error()
}
