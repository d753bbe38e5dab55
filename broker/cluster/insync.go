package cluster

import (
	"time"

	"felix.dev/felix/broker/catalog"
)

// Lacks says what of this broker is not known to be up to date, by what the leaders
// of its groups said last; nothing if all of it is. It is quick. As long as there is
// something, the leaders are asked again now and then, at most every Timings.Retry.
//
// What a replica knows by itself is not enough after a restart: its leader's log may
// be much longer than it has heard. // B84
func (c *Cluster) Lacks() []string {
	st := c.State()
	b, ok := st.Broker(c.cfg.Self.Node)
	if !ok || !c.known.Load() {
		return []string{"the catalog is not known yet"}
	}
	words := c.around.words()
	words[c.cfg.Self.Node] = word{report: c.report(), at: time.Now()}
	up := func(node, instance string) bool {
		w := words[node]
		return !w.at.IsZero() && w.failed == "" && w.report.Instance == instance
	}
	leader := func(id uint32) (string, uint64) {
		node, term, _ := c.Leader(id)
		return node, term
	}
	var groups []GroupStatus
	for _, g := range st.Groups() {
		if g.ID == catalog.MetadataGroup || holdsGroup(&g, c.cfg.Self) {
			groups = append(groups, groupStatus(&g, words, leader, up))
		}
	}
	s := BrokerStatus{Broker: b, Up: true}
	judge(&s, groups)
	if s.InSync {
		return nil
	}
	now := time.Now().UnixNano()
	if last := c.asked.Load(); now-last > int64(c.cfg.Timings.Retry) && c.asked.CompareAndSwap(last, now) {
		c.around.push()
	}
	return s.Because
}
