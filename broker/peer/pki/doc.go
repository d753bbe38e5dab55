// Package pki makes and reads the certificates by which the brokers of a cluster
// know each other: a CA that belongs to the cluster, and a certificate for each node
// that it signs. All of it is PEM files and crypto/x509; any other CA will do as well.
//
// It is not for the certificates that clients see, has no revocation (take the CA
// out of the trusted file, or let certificates be short-lived) and starts no
// goroutines.
//
// # Names
//
// A node's certificate is one that a trusted CA signed, for servers and for clients,
// with an alternative name that names the node: the DNS name <node>, exactly, or the
// URI felix://node/<node>. With the DNS name felix-peer it names every node, for
// clusters whose brokers share one certificate; whoever has its key can then speak
// for any of them. Host names and addresses do not matter: a broker is who it is
// wherever it runs.
//
// # Files that change
//
// Files reads its files at each handshake, so that what was replaced is used without
// a restart. What cannot be read, or does not fit together (a certificate was
// replaced and its key was not yet), is reported once, and the last good one stays
// in use. To change the CA have both in the trusted file of every broker first, then
// replace certificates, then take the old one out.
//
// # Files
//
// name.go: which node a certificate names. ca.go: a new CA. issue.go: a certificate
// for a node. files.go: files that are read again when they change. pem.go: what is
// in the files.
package pki
