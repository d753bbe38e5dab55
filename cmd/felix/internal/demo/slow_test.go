package demo

import (
	"os"
	"strings"
	"testing"

	"felix.dev/felix/cmd/felix/internal/term"
)

// TestSlowConsumer is the demonstration itself, over real QUIC. // B01 B02 B06
func TestSlowConsumer(t *testing.T) {
	results, err := SlowConsumer(t.Context(), SlowConfig{Records: minRecords(4096), Say: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	if err := WriteResults(os.Stderr, results, term.Style{}); err != nil {
		t.Error(err)
	}
	for _, r := range results {
		for _, broken := range r.Broken() {
			t.Errorf("%s: not so: %s", r.Policy, broken)
		}
	}
	if len(results) != len(Policies()) {
		t.Errorf("got %d results", len(results))
	}
}

func TestSlowConfig(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  SlowConfig
		want string
	}{
		{name: "defaults"},
		{name: "a volume that fits into the buffers", cfg: SlowConfig{Records: 100}, want: "do not exceed all windows"},
		{name: "a policy that there is not", cfg: SlowConfig{Policies: []string{"DropOld"}}, want: `policy "DropOld"`},
		{name: "records without room for a number", cfg: SlowConfig{Size: 4}, want: "records of 4 bytes"},
	} {
		err := c.cfg.Validate()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}
