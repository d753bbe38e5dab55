// Package quorum keeps quorum groups: logs that a majority of brokers agree on, each
// feeding a machine of its owner's. It wraps hashicorp/raft.
//
// It knows nothing of streams, shards or the catalog: what entries mean is their
// machine's matter. Who is a member is its owner's: it makes the one change that
// it is told to make. It moves no data to take or install a snapshot: a snapshot
// is a manifest, and a machine that is given one fetches what it lacks by itself.
//
// raft gets a transport, a log store, a state store, a snapshot store and a logger of
// this package. The transport sends everything between two servers over two connections
// each way, heartbeats of all groups in one frame, at the pace that a lease asks for.
// The log store keeps terms and types in memory and gives raft commands without their
// data, which is loaded by who sends or applies it. Files are described in
// docs/format/quorum.md.
//
// # Invariants
//
//   - A server is a node with its data directory's instance. State of another server is
//     not used, and a connection that is meant for another instance is refused. So a
//     volume that was wiped, or put back, never votes for what it was.
//   - An answer of ErrNotLeader, ErrStuck, ErrBusy, ErrTooLarge or ErrClosed means that
//     nothing was appended. Every proposal is answered within NodeConfig.ProposeTimeout.
//   - Machines are given committed entries only, in order, each once between Recover
//     and the group's end.
//   - A snapshot counts once the machine has made durable, or has fetched, all that it
//     describes. Entries are removed only up to the newest one.
//   - A group whose log, state store or machine does not come back, or fails, is
//     muted: it sends no requests, so that others elect; it answers those that come. State.Stuck says why. It
//     recovers by itself, unless the write-ahead log is poisoned.
//   - Who is no voter never stands for election. Nobody does who was not asked to by its
//     leader and whom a majority would not elect (pre-vote).
//   - State that cannot be trusted is a *DamagedError at Open; nothing is changed then.
//     raft panics when it cannot write its term or read its log: the stores wait instead,
//     for as long as the group is open.
//
// # Goroutines
//
// A node owns one that looks after all groups every few tens of milliseconds, one for
// each server that it sends heartbeats to, and one for each connection that it dialed;
// connections that others opened are read by the peer transport's goroutines. A group owns raft's,
// and four that hand on requests, answers to proposals, changes of leadership and what is committed. Machine.Apply, Snapshot and
// Restore are called by one of raft's. Close waits for all, as long as its context lets it.
//
// # Files
//
//	node.go, config.go, errors.go, server.go        a broker's part in all groups, what it is given, what it says
//	group.go, open.go, close.go, remove.go          one group and its life
//	machine.go, fsm.go                              what entries are applied to, and how raft gets there
//	proposal.go, proposals.go                       an entry on its way, and all of them
//	leadership.go, transfer.go, members.go          who leads, who is to lead, who belongs
//	watch.go                                        what hangs or fails
//	snapshot.go, snapstore.go, snapfile.go          when snapshots are taken; where they are kept, and as what
//	applied.go                                      how far the machine is, as others count
//	logstore.go, compact.go                         raft's log on the write-ahead log; what of it may go
//	stable.go, bolt.go, filestate.go                term and vote; in bolt's file; in one for tests
//	transport.go, pipeline.go, sendinstall.go, announce.go  what a group sends
//	progress.go                                     how far it knows its followers to be
//	link.go, lane.go, beats.go                      the connections to one server; requests on one; heartbeats
//	serve.go, heard.go, inbox.go                    what others ask, and who of them is connected
//	frame.go, codec.go                              bytes on a connection
//	hclog.go                                        raft's log
package quorum
