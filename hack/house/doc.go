// Package house holds the rules of this repository that a compiler does not: which package may import which,
// that every direct dependency and every mutex is accounted for, that each package says what it is and what
// is in which of its files, and how long a file may grow. The rules are pure functions over lists; the tests
// read the repository and apply them, so that `make test` holds the rules on a machine without any tool but Go.
//
// .golangci.yml repeats the arrows for editors (depguard). Where the two differ, this package is right.
//
// It is not part of the product: nothing imports it.
package house
