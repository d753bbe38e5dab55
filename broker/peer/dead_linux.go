package peer

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// deadAfter has the system end a connection on which bytes are not taken by the other
// side for that long. Without, it tries for a quarter of an hour to reach a host that
// is gone, or whose address another one has now.
func deadAfter(d time.Duration) func(network, address string, c syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) error {
		var failed error
		err := c.Control(func(fd uintptr) {
			failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(d.Milliseconds()))
		})
		if err != nil {
			return err
		}
		return failed
	}
}
