package bench

import (
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// scriptVariable makes the test program a process that prints these lines.
const scriptVariable = "FELIX_BENCH_TEST_SCRIPT"

// TestMain lets the test program be started as a broker: like felix it has the
// command `bench broker`.
func TestMain(m *testing.M) {
	if script, ok := os.LookupEnv(scriptVariable); ok {
		if script != "" {
			scripted(strings.Split(script, "\n"))
		}
		os.Exit(0)
	}
	if len(os.Args) > 2 && os.Args[1] == "bench" {
		if root().Execute() != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}
