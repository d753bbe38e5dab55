package broker

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"felix.dev/felix/broker/admin"
)

func (b *Broker) ready() bool { return b.serving.Load() }

// readiness is what /readyz answers. A stream that cannot be served does not take
// the broker out of service: the others would go with it.
func (b *Broker) readiness(context.Context) []admin.Check {
	serving := admin.Check{Name: "serving", Ready: b.ready()}
	if !serving.Ready {
		serving.Message = "starting or shutting down"
	}
	streams := admin.Check{Name: "streams", Ready: true}
	if problems := b.streams.problems(); len(problems) > 0 {
		const show = 10
		more := ""
		if n := len(problems) - show; n > 0 {
			more = fmt.Sprintf("; and %d more", n)
		}
		streams.Message = strings.Join(slices.Clip(problems[:min(show, len(problems))]), "; ") + more
	}
	checks := []admin.Check{serving, streams, b.certificateCheck(time.Now()), b.keysCheck()}
	if b.member != nil {
		checks = append(checks, b.member.check())
	}
	return checks
}

// keysCheck says which key files cannot be used: their last good keys stay in force,
// until the broker is restarted.
func (b *Broker) keysCheck() admin.Check {
	c := admin.Check{Name: "keys", Ready: true}
	if b.keys.files == nil {
		return c
	}
	problems := b.keys.files.Problems()
	texts := make([]string, 0, len(problems))
	for _, tenant := range slices.Sorted(maps.Keys(problems)) {
		texts = append(texts, fmt.Sprintf("%v; the last good keys stay in force until a restart: repair the file", problems[tenant]))
	}
	c.Message = strings.Join(texts, "; ")
	return c
}
