package faults_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if config, is := os.LookupEnv(brokerEnv); is {
		os.Exit(runBroker(config))
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if id, err := identities(); err == nil {
			_ = os.RemoveAll(id.dir)
		}
		os.Exit(code)
	}))
}
