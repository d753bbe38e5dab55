// Package term is how commands speak to a person: whether there is a terminal at all, colours, tables, and a
// progress line.
//
// It decides nothing about what is said. On anything that is not a terminal, such as a pipe or a file, all of it
// falls back to plain text without escape sequences, and a progress line says nothing.
//
// The package starts no goroutine and keeps no state of its own. A Style is immutable; a Progress may be used by
// several goroutines at once.
package term
