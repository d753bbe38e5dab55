//go:build !unix

package cli

// brokerIn cannot know: brokers take no lock on these systems.
func brokerIn(string) (folder, process string) { return "", "" }
