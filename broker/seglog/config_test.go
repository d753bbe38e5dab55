package seglog

import (
	"strings"
	"testing"
)

func TestConfigValidate(t *testing.T) {
	if err := (&Config{Dir: "x"}).Validate(); err != nil {
		t.Errorf("the least: %v", err)
	}
	cfg := Config{
		SegmentBytes: -1, IndexEvery: -1, Fsync: 7, FsyncEvery: -1, MaxBytes: -1, MaxAge: -1,
		SnapshotState: func() []byte { return nil },
	}
	err := cfg.Validate()
	if err == nil {
		t.Fatal("accepted")
	}
	for _, word := range []string{"dir", "segment bytes", "index every", "fsync mode 7", "fsync every", "max bytes", "max age", "snapshot"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q says nothing of %q", err, word)
		}
	}
	if _, _, openErr := Open(cfg); openErr == nil {
		t.Error("opened")
	}
}
