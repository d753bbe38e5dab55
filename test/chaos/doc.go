// Package chaos kills, ends, pauses and disturbs brokers under load, and holds what is left against what publishers were
// told and readers have seen: one `felix serve` alone, and clusters, of processes and in this process.
//
// Its tests need the build tag chaos, for they take long: `make test-chaos`. CHAOS_FOR is how long seeds are tried (20m, of
// which half with processes and half in this process); the other tests come on top. FELIX_CHAOS_ROUNDS is how often the
// broker that is alone is killed (50). Each test prints the seed of its random choices; FELIX_CHAOS_SEED makes them again,
// `go test -tags chaos -run TestProcessSeeds ./test/chaos` with it tries that seed alone. FELIX_BINARY is a felix to test instead of
// the one of this tree. What the machine does between
// them is not repeatable, so a seed finds the neighbourhood of a failure, not the failure itself.
//
// # What is held
//
//   - A record that was acknowledged is at the offset that was named, for ever.
//   - Offsets have no holes, and an offset never holds two different records, whoever
//     reads it, through which broker and when.
//   - A record that was refused is nowhere; one with an unknown outcome, or that wanted
//     no answer, is there once or not at all; none is there twice.
//   - The records of a publisher are in the order in which it published them.
//   - A subscription that was there all the time has seen every record once.
//   - An idempotent publisher never gives up: whatever happens is over before its time is.
//   - A log is never worse than repairable, and after a shutdown it is clean.
//
// Package history does the holding for clusters; ledger_test.go for the broker that is alone, as it goes along.
//
// # What it cannot see
//
// The brokers of a cluster in this process share its scheduler and its memory, and a disk that is full there refuses every
// write, not only those that need room. No power is cut: that is for the tests of the packages, with vfs/faultfs.
//
// # Files
//
//	process_test.go    a broker's process    machine_test.go  ports and memory
//	cluster_test.go    a cluster's brokers   status_test.go   what is asked and waited for
//	inproc_test.go     a broker in this one  disk_test.go     its disk
//	ledger_test.go     what is known of each record of a broker that is alone
//	load_test.go       its publishers        reader_test.go   its readers, and reads afterwards
//	crash_test.go      its tests
//	crowd_test.go      publishers and readers of a cluster
//	single_test.go     publishes one by one, bursts, and waiting for all of them
//	verdict_test.go    how they end and what is concluded
//	pinned_test.go     who stays with one broker
//	seeds_test.go      anything at any time, to processes
//	network_test.go    cuts, delays and clocks, and anything at any time in this process
//	diskday_test.go    disks that are full, slow or broken
//	failover_test.go   leaders that die
//	membership_test.go brokers that are restarted, emptied, moved and removed
//	stampede_test.go   many clients that come back at once
//
// A test starts its processes itself and ends those and no others, by their ids.
package chaos
