package metrics

import "github.com/prometheus/client_golang/prometheus"

// EndReason is why a subscription ended.
type EndReason string

// Reasons for the end of a subscription.
const (
	EndClient     EndReason = "client"        // its reader closed the stream
	EndConnection EndReason = "connection"    // its connection went
	EndLagged     EndReason = "lagged"        // passed its bound, told where to resume
	EndSlow       EndReason = "slow_consumer" // a write made no progress in time
	EndTooOld     EndReason = "too_old"       // retention took what it needed next
	EndDeleted    EndReason = "stream_deleted"
	EndAdmin      EndReason = "admin" // ended through the admin API
	EndShutdown   EndReason = "shutdown"
	EndStorage    EndReason = "storage" // its log cannot be read on
	EndMoved      EndReason = "moved"   // another broker serves the shard, told to go there
	EndDeposed    EndReason = "deposed" // this broker found out to lead the shard no longer
)

// Subscriptions is updated by the server and egress.
type Subscriptions struct {
	Started prometheus.Counter
	Ended   Counters[EndReason]
}

func newSubscriptions(b *builder) Subscriptions {
	return Subscriptions{
		Started: b.counter("felix_subscriptions_started_total", "Subscriptions registered."),
		Ended: counters(b, "felix_subscriptions_ended_total", "Subscriptions ended.", "reason", []EndReason{
			EndClient, EndConnection, EndLagged, EndSlow, EndTooOld,
			EndDeleted, EndAdmin, EndShutdown, EndStorage, EndMoved, EndDeposed,
		}),
	}
}
