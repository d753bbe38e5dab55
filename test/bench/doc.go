// Command bench makes the table of measured cells in docs/design.md: it runs
// `felix bench` and the reference programs in turn, several times, and prints the
// medians against their targets as Markdown.
//
//	test/bench/table.sh                       build everything, then this
//	go run ./test/bench -felix bin/felix -quiclimit PATH -natsbench PATH
//
// The reference programs are not part of this repository: quiclimit is what
// quic-go can do without a broker around it, natsbench puts the same load on an
// embedded NATS server. Cells without their reference are left out, and said so.
//
// # Method
//
// A group is what has to be run within the same minute to be compared. Each round
// runs every group once, in an order that turns around from round to round, so
// that a machine that slows down hits both sides. A cell compares the median of
// one side's rounds with the median of the other's. Every run's own output is kept
// as a JSON line, so that another question can be asked of it later.
//
// Some groups are run in the first round only, as they repeat by themselves what matters: the kills of a failover, and a
// cluster that is watched at rest. A cell that is told has no target.
//
// A run of the product that fails (a record is not accounted for) fails the cell,
// whatever its rate.
package main
