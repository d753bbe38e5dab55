// Package cli is the command line `felix`: its commands, their flags and help, and what they print.
//
// It holds no function of the broker and none of the client. A command resolves its settings, calls one of broker,
// broker/admin, broker/auth, broker/seglog and client, and says what came of it.
//
// What a command is asked for goes to standard output; everything else (notices, progress, summaries, errors) goes
// to standard error, so that output can be piped. An error is one line that says what happened and whether trying
// again helps.
//
// Exit statuses, for scripts:
//
//	0  done; also a reader or a broker that was asked to stop by a signal
//	1  it did not work
//	2  the command line is wrong
//	3  felix inspect: a log that opening will repair
//	4  felix inspect: damaged data that is refused
//
// Main is called once, from the main goroutine. Everything below it is handed an Env and uses nothing of the
// process beyond it, so that tests may run any number of commands at the same time.
package cli
