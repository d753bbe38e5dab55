// Package settings finds out which broker a command talks to, and as whom.
//
// Each value is looked for on its own: first a flag, then an environment variable, then the context file, which a
// development broker writes beside its data. A Settings remembers where each value came from, so that a command
// can show it and an error can name it.
//
// It is not a configuration of the broker, and it connects to nothing: it makes the Config of a client and leaves
// dialing to the command.
//
// The package starts no goroutine. Settings is immutable once resolved and may be shared; the token source that it
// gives to a client reads the context file on the goroutine that asks.
package settings
