// Package faults holds whole-broker tests of the faults in the table A1-A4 of the
// project's list: a broker as package broker assembles it, the Go client, and real
// QUIC over loopback between them. Every test names the id of the fault that it
// holds.
//
// What it is not: the place for a fault that one package can show by itself. Such a
// test lies beside the code. Here are the rows whose input and outcome are a user's:
// what a reader got, what a publisher was told, what an operator can see.
//
// # Rules
//
//   - No test sleeps: it waits for a condition, with a deadline (eventually).
//   - No test judges by a clock where a count can say the same: how many records
//     others got meanwhile instead of how long it took.
//   - Volumes are small and windows too: each test exceeds every buffer between a
//     publisher and a stalled reader, by as little as will do.
//
// # Files
//
//	node_test.go     a broker in this process      process_test.go  one in a process of its own, to be killed
//	stack_test.go    one over a disk that fails    proxy_test.go    a network that loses datagrams
//	records_test.go  records that can be checked   others: the tests, by what goes wrong
package faults
