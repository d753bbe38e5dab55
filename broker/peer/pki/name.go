package pki

import (
	"crypto/x509"
	"net/url"
	"slices"
)

// AnyNode is the DNS name of a certificate that names every node.
const AnyNode = "felix-peer"

// nodeURI is the name of a node that need not look like a DNS name.
func nodeURI(node string) *url.URL {
	return &url.URL{Scheme: "felix", Host: "node", Path: "/" + node}
}

// Names says whether a certificate names a node. Who signed it is not looked at.
func Names(cert *x509.Certificate, node string) bool {
	if node == "" {
		return false
	}
	if slices.Contains(cert.DNSNames, node) || slices.Contains(cert.DNSNames, AnyNode) {
		return true
	}
	want := nodeURI(node).String()
	return slices.ContainsFunc(cert.URIs, func(u *url.URL) bool { return u.String() == want })
}
