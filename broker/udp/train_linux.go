package udp

import (
	"encoding/binary"
	"net"
	"net/netip"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"
)

const (
	// maxTrain is what one read can return: the largest UDP payload there is.
	maxTrain = 1 << 16
	// oobSpace holds what can come with a train: segment size, ECN, packet info.
	oobSpace = 256
)

// train is what one read returned: datagrams of seg bytes, the last one
// perhaps shorter, all from one sender and with the same control messages.
type train struct {
	data  []byte // not yet delivered
	empty bool   // a datagram of no bytes is to be delivered
	seg   int
	oob   []byte // control messages to hand on
	addr  *net.UDPAddr
}

func (t *train) done() bool { return len(t.data) == 0 && !t.empty }

// load makes t the train of data with the control messages oob. The storage of
// t.oob is used again.
func (t *train) load(data, oob []byte, addr *net.UDPAddr) {
	t.data, t.empty, t.seg, t.addr, t.oob = data, len(data) == 0, len(data), addr, t.oob[:0]
	for len(oob) > 0 {
		h, body, rest, err := unix.ParseOneSocketControlMessage(oob)
		if err != nil {
			return // cut short by the kernel; what was whole is kept
		}
		if h.Level == unix.SOL_UDP && h.Type == unix.UDP_GRO {
			if len(body) >= 4 {
				if seg := int(int32(binary.NativeEndian.Uint32(body))); seg > 0 {
					t.seg = seg
				}
			}
		} else {
			t.oob = append(t.oob, oob[:len(oob)-len(rest)]...)
		}
		oob = rest
	}
}

// next moves the next datagram of the train to m.
func (t *train) next(m *ipv4.Message) {
	seg := t.data[:min(t.seg, len(t.data))]
	t.data, t.empty = t.data[len(seg):], false
	m.N, m.Flags, m.Addr = 0, 0, t.addr
	for _, b := range m.Buffers {
		m.N += copy(b, seg[m.N:])
	}
	if m.N < len(seg) {
		m.Flags |= unix.MSG_TRUNC
	}
	m.NN = copy(m.OOB, t.oob)
	if m.NN < len(t.oob) {
		// Half a control message would be an error to its reader.
		m.NN = wholeMessages(m.OOB, t.oob)
		m.Flags |= unix.MSG_CTRUNC
	}
}

// wholeMessages is the length of the control messages of oob that fit in dst.
func wholeMessages(dst, oob []byte) int {
	n := 0
	for rest := oob; len(rest) > 0; {
		_, _, after, err := unix.ParseOneSocketControlMessage(rest)
		if err != nil {
			break
		}
		end := len(oob) - len(after)
		if end > len(dst) {
			break
		}
		n, rest = end, after
	}
	return n
}

// receiver reads trains from a socket with UDP_GRO.
type receiver struct {
	c    *net.UDPConn
	buf  []byte
	oob  []byte
	t    train
	from netip.AddrPort // of t.addr, which is used again while it is the same
}

func newReceiver(c *net.UDPConn) *receiver {
	return &receiver{c: c, buf: make([]byte, maxTrain), oob: make([]byte, oobSpace)}
}

// readBatch delivers from the train at hand, or waits for the next one. It
// does not read a second one to fill ms: that could block.
func (r *receiver) readBatch(ms []ipv4.Message) (int, error) {
	if len(ms) == 0 {
		return 0, nil
	}
	if r.t.done() {
		n, oobn, _, from, err := r.c.ReadMsgUDPAddrPort(r.buf, r.oob)
		if err != nil {
			return 0, err
		}
		addr := r.t.addr
		if addr == nil || from != r.from {
			// A new one: those handed out before must not change.
			addr, r.from = net.UDPAddrFromAddrPort(from), from
		}
		r.t.load(r.buf[:n], r.oob[:oobn], addr)
	}
	n := 0
	for n < len(ms) && !r.t.done() {
		r.t.next(&ms[n])
		n++
	}
	return n, nil
}
