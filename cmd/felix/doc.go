// Command felix is the whole of Felix in one binary: the broker, a command line for people and scripts, a
// demonstration and a benchmark.
//
// This package only passes the process's arguments and exit status on; the commands are in internal/cli.
package main
