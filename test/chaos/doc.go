// Package chaos kills, ends and pauses a real `felix serve` under load, and holds what
// is left against what publishers were told and readers have seen.
//
// Its tests need the build tag chaos, for they take minutes: `make test-chaos`.
// FELIX_CHAOS_ROUNDS is how often the broker is killed (50). Each test prints the seed
// of its random choices; FELIX_CHAOS_SEED makes them again. What the machine does
// between them is not repeatable, so a seed finds the neighbourhood of a failure, not
// the failure itself.
//
// # What is held
//
//   - A record that was acknowledged is at the offset that was named, for ever.
//   - Offsets have no holes, and an offset never holds two different records, whoever
//     reads it and when.
//   - A record that was refused is nowhere; one with an unknown outcome, or that wanted
//     no answer, is there once or not at all; none is there twice.
//   - The records of a publisher are in the order in which it published them.
//   - A subscription that was there all the time has seen every record once.
//   - A log is never worse than repairable, and after a shutdown it is clean.
//
// # Files
//
//	process_test.go  the broker         ledger_test.go  what is known of each record
//	load_test.go     publishers         reader_test.go  subscriptions, and reads afterwards
//	crash_test.go    the tests
//
// A test starts its processes itself and ends those and no others, by their ids.
package chaos
