package udp

import (
	"errors"
	"net"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// enableGRO is false where the kernel refuses (before 5.0).
func enableGRO(rc syscall.RawConn) bool {
	var serr error
	err := rc.Control(func(fd uintptr) {
		serr = unix.SetsockoptInt(int(fd), unix.SOL_UDP, unix.UDP_GRO, 1)
	})
	return err == nil && serr == nil
}

// gsoEnabled decides as quic-go does, to report it: quic-go makes its own
// decision on this socket.
func gsoEnabled(rc syscall.RawConn) bool {
	if off, err := strconv.ParseBool(os.Getenv("QUIC_GO_DISABLE_GSO")); err == nil && off {
		return false
	}
	var serr error
	err := rc.Control(func(fd uintptr) {
		_, serr = unix.GetsockoptInt(int(fd), unix.SOL_UDP, unix.UDP_SEGMENT)
	})
	return err == nil && serr == nil
}

// trainError turns EINVAL for a train into EIO. Both are what kernels and
// drivers answer that cannot send trains to this destination, at once or after
// a change of route; quic-go falls back on EIO and gives the connection up on
// EINVAL.
func trainError(err error, oob []byte) error {
	serr, ok := errors.AsType[*os.SyscallError](err)
	if !ok || !errors.Is(serr.Err, unix.EINVAL) || !hasSegmentSize(oob) {
		return err
	}
	return &net.OpError{Op: "write", Net: "udp", Err: os.NewSyscallError(serr.Syscall, unix.EIO)}
}

func hasSegmentSize(oob []byte) bool {
	for len(oob) > 0 {
		h, _, rest, err := unix.ParseOneSocketControlMessage(oob)
		if err != nil {
			return false
		}
		if h.Level == unix.SOL_UDP && h.Type == unix.UDP_SEGMENT {
			return true
		}
		oob = rest
	}
	return false
}

// setBuffers asks for the socket buffers, past the system's limit where the
// process may, and returns what is in effect in the unit of the request.
func setBuffers(c *net.UDPConn, rc syscall.RawConn, o Options) (read, write int) {
	read = setBuffer(rc, unix.SO_RCVBUF, unix.SO_RCVBUFFORCE, o.ReadBuffer)
	write = setBuffer(rc, unix.SO_SNDBUF, unix.SO_SNDBUFFORCE, o.WriteBuffer)
	return read, write
}

// setBuffer returns the size in effect, 0 if it cannot be read. A larger
// buffer than wanted is left alone. The kernel doubles what is asked for, for
// its own overhead, and reports the doubled value.
func setBuffer(rc syscall.RawConn, opt, force, wanted int) int {
	size := 0
	err := rc.Control(func(fd uintptr) {
		get := func() int {
			n, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, opt)
			if err != nil {
				return 0
			}
			return n / 2
		}
		if size = get(); size >= wanted {
			return
		}
		// Errors show in the size.
		if unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, force, wanted) != nil {
			_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, opt, wanted)
		}
		size = get()
	})
	if err != nil {
		return 0
	}
	return size
}
