// Command faults finds the tests that carry the id of a reported fault (B01, B02, ...) in their name or in a
// comment or string inside them, and lists which test holds which fault.
//
//	go run ./hack/faults                       # the table: id, package, test
//	go run ./hack/faults -packages             # packages and the -run expression that hold them (make test-fault)
//	go run ./hack/faults -rows faults.md       # ids that begin a table row of that file and that no test carries
//
// It reads source text only: a test that carries an id and does not check the fault is for review to find.
package main
