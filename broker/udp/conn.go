package udp

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/net/ipv4"
)

// Conn is a UDP socket for quic-go. See the package comment for what may be
// called from where.
type Conn struct {
	c *net.UDPConn

	batch *ipv4.PacketConn // reads without GRO
	gro   *receiver        // nil: GRO is off

	// writeMsg is writeMsgUDP but in tests.
	writeMsg func(b, oob []byte, addr *net.UDPAddr) (n, oobn int, err error)
}

// quic-go looks for these.
var _ interface {
	net.PacketConn
	SyscallConn() (syscall.RawConn, error)
	SetReadBuffer(int) error
	SetWriteBuffer(int) error
	ReadMsgUDP(b, oob []byte) (n, oobn, flags int, addr *net.UDPAddr, err error)
	WriteMsgUDP(b, oob []byte, addr *net.UDPAddr) (n, oobn int, err error)
	ReadBatch(ms []ipv4.Message, flags int) (int, error)
} = (*Conn)(nil)

// wrap sets the options of c. It takes c over unless it fails.
func wrap(c *net.UDPConn, o Options) (*Conn, Report, error) {
	rc, err := c.SyscallConn()
	if err != nil {
		return nil, Report{}, err
	}
	conn := &Conn{c: c, batch: ipv4.NewPacketConn(c)}
	conn.writeMsg = conn.writeMsgUDP
	report := Report{Wanted: max(o.ReadBuffer, o.WriteBuffer)}
	report.ReadBuffer, report.WriteBuffer = setBuffers(c, rc, o)
	report.GSO = gsoEnabled(rc)
	if o.GRO && enableGRO(rc) {
		report.GRO = true
		conn.gro = newReceiver(c)
	}
	return conn, report, nil
}

// ReadBatch fills one message for each datagram, at most len(ms) of them, and
// waits for the first. A datagram larger than its buffers is cut, as by the
// kernel. flags are used only without GRO.
func (c *Conn) ReadBatch(ms []ipv4.Message, flags int) (int, error) {
	if c.gro == nil {
		return c.batch.ReadBatch(ms, flags)
	}
	return c.gro.readBatch(ms)
}

// ReadMsgUDP reads one datagram with its control messages.
func (c *Conn) ReadMsgUDP(b, oob []byte) (n, oobn, flags int, addr *net.UDPAddr, err error) {
	if c.gro == nil {
		return c.c.ReadMsgUDP(b, oob)
	}
	ms := [1]ipv4.Message{{Buffers: [][]byte{b}, OOB: oob}}
	if _, err := c.gro.readBatch(ms[:]); err != nil {
		return 0, 0, 0, nil, err
	}
	addr, _ = ms[0].Addr.(*net.UDPAddr)
	return ms[0].N, ms[0].NN, ms[0].Flags, addr, nil
}

// ReadFrom reads one datagram.
func (c *Conn) ReadFrom(b []byte) (int, net.Addr, error) {
	if c.gro == nil {
		return c.c.ReadFrom(b)
	}
	n, _, _, addr, err := c.ReadMsgUDP(b, nil)
	if err != nil {
		return 0, nil, err
	}
	return n, addr, nil
}

// WriteMsgUDP sends b, or the train of datagrams that the control messages
// make of it. Where the kernel refuses a train, the error is the one by which
// quic-go knows it: it then sends the datagrams one by one and forms no more
// trains on that connection.
func (c *Conn) WriteMsgUDP(b, oob []byte, addr *net.UDPAddr) (n, oobn int, err error) {
	n, oobn, err = c.writeMsg(b, oob, addr)
	if err != nil && len(oob) > 0 {
		err = trainError(err, oob)
	}
	return n, oobn, err
}

// writeMsgUDP goes through netip: with a UDPAddr each send would allocate.
func (c *Conn) writeMsgUDP(b, oob []byte, addr *net.UDPAddr) (n, oobn int, err error) {
	if ap := addr.AddrPort(); ap.Addr().IsValid() {
		return c.c.WriteMsgUDPAddrPort(b, oob, ap)
	}
	return c.c.WriteMsgUDP(b, oob, addr) // no IP: this host
}

// WriteTo sends one datagram.
func (c *Conn) WriteTo(b []byte, addr net.Addr) (int, error) { return c.c.WriteTo(b, addr) }

// Close closes the socket and ends a read that waits.
func (c *Conn) Close() error { return c.c.Close() }

// LocalAddr is the address bound.
func (c *Conn) LocalAddr() net.Addr { return c.c.LocalAddr() }

// SetDeadline is that of net.PacketConn.
func (c *Conn) SetDeadline(t time.Time) error { return c.c.SetDeadline(t) }

// SetReadDeadline is that of net.PacketConn.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.c.SetReadDeadline(t) }

// SetWriteDeadline is that of net.PacketConn.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.c.SetWriteDeadline(t) }

// SyscallConn gives quic-go the socket for its options.
func (c *Conn) SyscallConn() (syscall.RawConn, error) { return c.c.SyscallConn() }

// SetReadBuffer is for quic-go, which asks again where Listen got less.
func (c *Conn) SetReadBuffer(bytes int) error { return c.c.SetReadBuffer(bytes) }

// SetWriteBuffer is for quic-go, which asks again where Listen got less.
func (c *Conn) SetWriteBuffer(bytes int) error { return c.c.SetWriteBuffer(bytes) }
