package broker

import (
	"context"
	"fmt"
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
	return []admin.Check{serving, streams, b.certificateCheck(time.Now())}
}
