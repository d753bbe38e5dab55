package quorum

import (
	"testing"
	"time"
)

// TestFollowersHearOfCommits: they apply the last entry soon, though nothing follows it.
func TestFollowersHearOfCommits(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, func(cfg *NodeConfig) { cfg.Timings.Commit = time.Hour })
	for range 5 {
		c.put("lone entry")
		c.settled()
	}
}
