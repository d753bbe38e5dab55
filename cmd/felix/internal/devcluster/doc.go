// Package devcluster runs several brokers of one cluster on this machine, as processes of one binary, for people to play
// with and for demonstrations of what a cluster survives. Everything that takes is made: certificates for brokers and clients,
// a key and a token that may do everything, configuration files, ports, and a context file by which the command line finds
// the cluster.
//
// It is not a way to run a cluster that is needed: all brokers share a machine, a disk and a token. Nor does it restart a
// broker that has ended: whoever asked for the cluster is told.
//
// # What is on disk
//
//	<dir>/context.yaml                     how to reach the cluster
//	<dir>/key.pem, keys.jwks               signs tokens, and lets brokers check them
//	<dir>/ca/                              the CA that signs the brokers' certificates for each other
//	<dir>/tls/                             the certificate that all brokers show clients, and what clients trust
//	<dir>/<node>/broker.yaml, peer/, data/ a broker's configuration, its certificate for the others, all that it keeps
//	<dir>/<node>/broker.log                what it says
//
// All but the records is written anew by each Prepare, except for keys and certificates that are there.
//
// # Invariants
//
//   - A process is ended by the id with which it was started, and by nothing else. Where the system offers it, the end of this
//     process ends the brokers as well.
//   - A cluster that is prepared again in the same folder has the same data, and may have other ports.
//
// # Goroutines
//
// A Broker has one goroutine while its process runs, which waits for its end; Kill and Terminate wait for it. All methods may be called from any
// goroutine, those that start and end a process one at a time for each broker.
//
// # Files
//
//	cluster.go   a cluster: prepared, started, stopped
//	broker.go    one broker's process
//	files.go     keys, certificates and configuration
//	ports.go     where everybody listens
//	sys_*.go     what becomes of the brokers when this process ends
package devcluster
