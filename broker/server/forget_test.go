package server

import (
	"strings"
	"testing"

	"felix.dev/felix/broker/stream"
)

// A stream that was deleted gives its memory back, though a publisher that once wrote
// to it stays connected and idle.
func TestDeletedStreamsAreForgotten(t *testing.T) {
	h := start(t, nil)
	k := h.dial().authed()
	h.memory("gone", 1, func(c *stream.Config) { c.TailBytes = 64 << 20 })
	before := heapInUse()
	payload := strings.Repeat("x", 1<<20)
	for i := range 12 {
		k.publish(publish(uint64(i), "gone", payload))
		k.ack()
	}
	if held := heapInUse() - before; held < 10<<20 {
		t.Fatalf("the stream holds %d bytes", held)
	}
	h.remove("gone")
	eventually(t, "its memory is given back", func() bool { return heapInUse()-before < 4<<20 })
	k.alive()
}
