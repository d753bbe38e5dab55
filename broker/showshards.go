package broker

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"felix.dev/felix/broker/admin"
	"felix.dev/felix/broker/route"
)

// Whoever is asked about a stream of a cluster asks the brokers that serve its shards:
// only they know where a shard ends and who reads it.

const (
	methodShow = "shards.show"
	// showAtMost bounds a call: a shard is some 300 bytes of its answer.
	showAtMost = 4096
	showWithin = 2 * time.Second
)

// shownShard is how a shard stands at the broker that serves it.
type shownShard struct {
	Incarnation string `json:"incarnation"`
	admin.Shard
}

// answerShows has other brokers see the shards that this one serves.
func (s *clusterStreams) answerShows() {
	s.peers.HandleCall(methodShow, func(_ context.Context, _ string, body json.RawMessage) (any, error) {
		var keys []route.Key
		if err := json.Unmarshal(body, &keys); err != nil {
			return nil, fmt.Errorf("broker: shards to show: %w", err)
		}
		all := make(map[string]*served)
		for _, v := range s.all() {
			all[v.entry.Incarnation] = v
		}
		out := make([]shownShard, 0, len(keys))
		for _, k := range keys {
			v := all[k.Incarnation]
			if v == nil || k.Shard >= v.entry.Spec.Shards || s.where.Lookup(k).Local == nil {
				continue
			}
			if local := v.shard(int(k.Shard)); local != nil {
				shard := shownShard{Incarnation: k.Incarnation}
				local.show(&shard.Shard)
				shard.Shard.Shard = k.Shard
				out = append(out, shard)
			}
		}
		return out, nil
	})
}

// complete fills in how the shards stand that other brokers serve.
func (s *clusterStreams) complete(ctx context.Context, streams []admin.Stream) {
	ctx, cancel := context.WithTimeout(ctx, showWithin)
	defer cancel()
	at := make(map[route.Key]*admin.Shard)
	of := make(map[string][]route.Key)
	for i := range streams {
		for j := range streams[i].Shards {
			k := &streams[i].Shards[j]
			node := k.Leader
			if k.Group == 0 {
				node = k.Owner
			}
			if node == "" || node == s.self.Node || k.Error != "" {
				continue
			}
			key := route.Key{Incarnation: streams[i].Incarnation, Shard: k.Shard}
			at[key] = k
			of[node] = append(of[node], key)
		}
	}
	var wg sync.WaitGroup
	for node, keys := range of {
		wg.Go(func() { s.ask(ctx, node, keys, at) }) // each key is of one node
	}
	wg.Wait()
}

// ask has a broker show shards.
func (s *clusterStreams) ask(ctx context.Context, node string, keys []route.Key, at map[route.Key]*admin.Shard) {
	for len(keys) > 0 {
		page := keys[:min(len(keys), showAtMost)]
		keys = keys[len(page):]
		var answer []shownShard
		err := s.peers.Call(ctx, node, methodShow, page, &answer)
		known := make(map[route.Key]*shownShard, len(answer))
		for i := range answer {
			known[route.Key{Incarnation: answer[i].Incarnation, Shard: answer[i].Shard.Shard}] = &answer[i]
		}
		for _, key := range page {
			k := at[key]
			if got := known[key]; got != nil {
				k.OldestOffset, k.NextOffset, k.LogBytes, k.TailBytes = got.OldestOffset, got.NextOffset, got.LogBytes, got.TailBytes
				k.Subscriptions, k.Error, k.Detail = got.Subscriptions, got.Error, got.Detail
				continue
			}
			k.Error = fmt.Sprintf("it is not known how it stands: broker %s, which should serve it, does not say", node)
			if err != nil {
				k.Detail = err.Error()
			}
		}
	}
}
