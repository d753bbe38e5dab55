package faultnet

import "time"

// rule is what is wrong with a link. The zero rule is nothing.
type rule struct {
	cut           bool
	delay, jitter time.Duration
	oneIn         int // chunk that closes its connection
}

// Cut has nothing pass between a and b, in either direction.
func (n *Network) Cut(a, b string) {
	n.set(func(r *rule) { r.cut = true }, link{a, b}, link{b, a})
}

// CutOneWay has nothing pass that from sends to to. Dialing takes both directions.
func (n *Network) CutOneWay(from, to string) {
	n.set(func(r *rule) { r.cut = true }, link{from, to})
}

// Delay has everything that from sends to to arrive later, by delay and up to jitter.
func (n *Network) Delay(from, to string, delay, jitter time.Duration) {
	n.set(func(r *rule) { r.delay, r.jitter = delay, jitter }, link{from, to})
}

// Flaky has one in oneIn chunks that pass between a and b close its connection
// instead, at random; 0: none. A chunk is what is read at once, 32 KiB at most.
func (n *Network) Flaky(a, b string, oneIn int) {
	n.set(func(r *rule) { r.oneIn = oneIn }, link{a, b}, link{b, a})
}

// Partition cuts every link between nodes of different groups. It leaves other links
// as they are.
func (n *Network) Partition(groups ...[]string) {
	var cut []link
	for i, these := range groups {
		for j, those := range groups {
			if i == j {
				continue
			}
			for _, from := range these {
				for _, to := range those {
					cut = append(cut, link{from, to})
				}
			}
		}
	}
	n.set(func(r *rule) { r.cut = true }, cut...)
}

// Heal takes away what is wrong between a and b. A node that is isolated or refuses
// goes on doing so.
func (n *Network) Heal(a, b string) {
	n.set(func(r *rule) { *r = rule{} }, link{a, b}, link{b, a})
}

// HealAll takes away everything that is wrong.
func (n *Network) HealAll() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.links)
	clear(n.lonely)
	clear(n.gone)
	n.change()
}

// Isolate cuts a node from all others; Rejoin takes that back.
func (n *Network) Isolate(node string) { n.mark(n.lonely, node, true) }

// Rejoin ends Isolate.
func (n *Network) Rejoin(node string) { n.mark(n.lonely, node, false) }

// Refuse has dialing to a node fail at once, as if no process were there.
func (n *Network) Refuse(node string, on bool) { n.mark(n.gone, node, on) }

// Strand has nothing pass ever again on the connections that exist between a and b, and
// leaves new ones alone: what a host leaves behind that lost power and came back, or
// came back at another address. Neither end hears of it.
func (n *Network) Strand(a, b string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for r := range n.relays {
		if r.link == (link{a, b}) || r.link == (link{b, a}) {
			r.stranded = true
		}
	}
	n.change()
}

// Reset closes the connections that exist between a and b.
func (n *Network) Reset(a, b string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for r := range n.relays {
		if r.link == (link{a, b}) || r.link == (link{b, a}) {
			r.close()
		}
	}
}

func (n *Network) set(change func(*rule), links ...link) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, l := range links {
		r := n.links[l]
		change(&r)
		n.links[l] = r
	}
	n.change()
}

func (n *Network) mark(set map[string]bool, node string, on bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	set[node] = on
	n.change()
}

// rule is that of one direction of a connection now. changed is closed when it may be
// another.
func (d *direction) rule() (r rule, changed <-chan struct{}) {
	n := d.network
	n.mu.Lock()
	defer n.mu.Unlock()
	r = n.ruleOf(d.link)
	r.cut = r.cut || d.relay.stranded
	return r, n.changed
}

// ruleOf is that of a link now. The caller holds mu. A node always reaches itself.
func (n *Network) ruleOf(l link) rule {
	if l.from == l.to {
		return rule{}
	}
	r := n.links[l]
	r.cut = r.cut || n.lonely[l.from] || n.lonely[l.to]
	return r
}
