package quorum

import (
	"fmt"
	"testing"
)

func TestThreeAgree(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	for i := range 20 {
		c.put(fmt.Sprint("entry ", i))
	}
	c.settled()
}

func TestFailover(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	for i := range 3 {
		old := c.put(fmt.Sprint("entry ", i))
		old.kill()
		rest := c.others(old)
		c.put(fmt.Sprint("after ", i), rest...)
		old.restart()
		c.settled()
	}
}
