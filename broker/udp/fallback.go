//go:build !linux

package udp

import (
	"net"
	"syscall"

	"golang.org/x/net/ipv4"
)

// receiver does not exist where the kernel has no UDP_GRO.
type receiver struct{}

func newReceiver(*net.UDPConn) *receiver { return nil }

func (*receiver) readBatch([]ipv4.Message) (int, error) { return 0, net.ErrClosed }

func enableGRO(syscall.RawConn) bool { return false }

func gsoEnabled(syscall.RawConn) bool { return false }

func trainError(err error, _ []byte) error { return err }

// setBuffers asks; what is in effect is not known.
func setBuffers(c *net.UDPConn, _ syscall.RawConn, o Options) (read, write int) {
	_ = c.SetReadBuffer(o.ReadBuffer)
	_ = c.SetWriteBuffer(o.WriteBuffer)
	return 0, 0
}
