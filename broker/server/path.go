package server

import (
	"log/slog"
	"time"

	"felix.dev/felix/broker/udp"
)

// watchPaths ends connections whose clients are heard but get nothing any more, so
// that they connect anew and go on. It runs until the server closes.
func (s *Server) watchPaths() {
	tick := time.NewTicker(udp.PathWatchInterval)
	defer tick.Stop()
	for {
		select {
		case <-s.closing:
			return
		case now := <-tick.C:
			for _, c := range s.open() {
				if c.path.Dead(now, c.quic.ConnectionStats()) {
					s.log.Warn("connection closed: the client is heard, but nothing it is sent arrives; large datagrams may be lost on the way",
						slog.String("remote", c.remote))
					c.close(closePathLost, "path lost")
				}
			}
		}
	}
}
