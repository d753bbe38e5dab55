// Package cluster is a broker's part in its cluster: how it finds, founds or joins
// it, the catalog that all brokers agree on, which replicas of the quorum groups
// are here, and how members, leaders and shards get where they are to be.
//
// The catalog is the state machine of the metadata group (group 0), of which every
// broker is a member: up to five vote, the others learn. Any broker can change it
// (Propose), and each has it in memory (State).
//
// It is not the data path: what the groups of streams carry is the business of the
// machines that Config.NewMachine makes. It decides nothing about placement
// itself: package placement does, and this package acts on it.
//
// # Invariants
//
//   - A server of a group is a node with one data directory. Another data directory
//     is another server, which begins as a learner and votes once it has caught up;
//     the one that it replaces is taken out first.
//   - Members of a group change one at a time, by the group's leader, and each
//     change is in the catalog before the next one begins.
//   - A group is begun once, by the broker that founded the cluster.
//   - A replica is removed only after it was closed and the newest catalog has said
//     that it is not to be here.
//   - A broker that was removed or replaced is told so, stops (Done), and has no
//     way to unseat anybody meanwhile.
//   - Brokers do not expire: one that is away keeps its place until a person drains
//     or removes it.
//   - A command is applied once, however often it is offered to leaders.
//
// What is in the metadata group's log, and in the file that a broker remembers its
// cluster by, is docs/format/cluster.md.
//
// # Goroutines
//
// New starts none. Start starts: one for each other broker, which exchanges reports
// with it every few seconds and when there is news; one that follows the catalog;
// one for each open replica, which sleeps unless this broker leads it and its
// members have to change; one that opens and closes replicas; one that is the
// steward of the cluster while this broker leads the metadata group; and one that
// brings shards here. Close ends and waits for all of them.
//
// # Files
//
//	cluster.go     Cluster, New, Start, Close: the whole
//	config.go      Config
//	errors.go      Error and its codes, and how errors travel
//	book.go        Book: what a broker remembers, and where the others are
//	messages.go    what brokers say to each other
//	calls.go       who answers what; Sync, handing over a leadership
//	enter.go       finding and founding the cluster
//	register.go    being let in
//	admit.go       letting others in
//	machine.go     the catalog as a state machine
//	propose.go     changing the catalog
//	spread.go      waiting until the others have the change
//	neighbours.go  hearing from the other brokers
//	report.go      what this broker says about itself
//	leaders.go     who leads what
//	replicas.go    opening and closing replicas
//	closing.go     how long what is open is waited for
//	converge.go    acting on the members of a group
//	step.go        deciding on the next change of a group's members
//	steward.go     what the metadata leader does for all
//	place.go       having the catalog follow the placement
//	balance.go     deciding which leadership to hand over
//	moves.go       bringing shards with one owner here
//	operations.go  what an admin may ask for
//	status.go      Status
//	statusof.go    putting a status together
//	insync.go      whether this broker is up to date
//	lateness.go    what replicas of a broker lack, said once
//	notify.go      waking whoever waits
package cluster
