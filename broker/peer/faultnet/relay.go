package faultnet

import (
	"math/rand/v2"
	"net"
	"time"
)

const (
	chunkBytes = 32 << 10
	queued     = 64 // chunks on their way, whatever the delay
)

// direction passes on what one end sends to the other.
type direction struct {
	network  *Network
	relay    *relay
	link     link
	from, to net.Conn
	chunks   chan chunk
	random   *rand.Rand // of read
}

type chunk struct {
	data []byte // nil: the end
	due  time.Time
}

// read takes what the sending end sends.
func (d *direction) read() {
	defer close(d.chunks)
	buffer := make([]byte, chunkBytes)
	for {
		n, err := d.from.Read(buffer)
		rule, _ := d.rule()
		c := chunk{due: time.Now().Add(rule.delay)}
		if rule.jitter > 0 {
			c.due = c.due.Add(time.Duration(d.random.Int64N(int64(rule.jitter))))
		}
		if n > 0 {
			if rule.oneIn > 0 && d.random.IntN(rule.oneIn) == 0 {
				d.relay.close()
				return
			}
			c.data = append([]byte(nil), buffer[:n]...)
			if !d.push(c) {
				return
			}
		}
		if err != nil {
			c.data = nil
			d.push(c)
			return
		}
	}
}

func (d *direction) push(c chunk) bool {
	select {
	case d.chunks <- c:
		return true
	case <-d.relay.done:
		return false
	}
}

// write has the other end get it, each chunk when it is due and the link is whole.
func (d *direction) write() {
	for c := range d.chunks {
		if !d.wait(c.due) {
			return
		}
		if c.data == nil {
			// The end is news like any other: the one that sent it may still get answers.
			if tcp, ok := d.to.(*net.TCPConn); ok && tcp.CloseWrite() == nil {
				return
			}
			d.relay.close()
			return
		}
		if _, err := d.to.Write(c.data); err != nil {
			d.relay.close()
			return
		}
	}
}

// wait returns when a chunk may pass; false: the connection is closed.
func (d *direction) wait(due time.Time) bool {
	for {
		rule, changed := d.rule()
		var timer *time.Timer
		var then <-chan time.Time
		if !rule.cut {
			left := time.Until(due)
			if left <= 0 {
				return true
			}
			timer = time.NewTimer(left)
			then = timer.C
		}
		select {
		case <-changed:
		case <-then:
		case <-d.relay.done:
			return false
		}
		if timer != nil {
			timer.Stop()
		}
	}
}
