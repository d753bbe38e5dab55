package stream

import (
	"testing"

	"felix.dev/felix/broker/wire"
)

func TestConfigProblemsAreReportedTogether(t *testing.T) {
	bad := Config{TailBytes: -1, Queue: Queue{Entries: 1<<20 + 1, Bytes: -1}, PublishWait: -1, BatchBytes: wire.MaxRecordsBytes + 1}
	err, ok := bad.Validate().(interface{ Unwrap() []error })
	if !ok || len(err.Unwrap()) != 5 {
		t.Errorf("got %v, want five problems", err)
	}
	if err := (&Config{BatchBytes: wire.MaxRecordsBytes}).Validate(); err != nil {
		t.Error(err)
	}
}
