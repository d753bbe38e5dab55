package udp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
)

// Listen opens a UDP socket at addr ("host:port", IPv4 or IPv6; ":0" for any).
// Options that the kernel refuses are not errors: Report says what is on.
func Listen(ctx context.Context, addr string, o Options) (*Conn, Report, error) {
	if err := o.Validate(); err != nil {
		return nil, Report{}, err
	}
	if o.ReadBuffer == 0 {
		o.ReadBuffer = DefaultBuffer
	}
	if o.WriteBuffer == 0 {
		o.WriteBuffer = DefaultBuffer
	}
	if err := ctx.Err(); err != nil { // looking a name up may be faster than noticing that
		return nil, Report{}, fmt.Errorf("udp: listen %s: %w", addr, err)
	}
	var lc net.ListenConfig
	pc, err := lc.ListenPacket(ctx, "udp", addr)
	if err != nil {
		return nil, Report{}, fmt.Errorf("udp: listen: %w", err)
	}
	c, ok := pc.(*net.UDPConn)
	if !ok {
		return nil, Report{}, errors.Join(fmt.Errorf("udp: listen %s: not a UDP socket", addr), pc.Close())
	}
	conn, report, err := wrap(c, o)
	if err != nil {
		return nil, Report{}, errors.Join(fmt.Errorf("udp: listen %s: %w", addr, err), c.Close())
	}
	if report.short(o) {
		o.warn(report)
	}
	return conn, report, nil
}

// quicGoWarning is quic-go's switch for its own line about the same shortfall,
// which goes to the standard logger and would be a second one.
const quicGoWarning = "QUIC_GO_DISABLE_RECEIVE_BUFFER_WARNING"

// warn says once what is missing. Without a log of ours quic-go's line stays.
func (o Options) warn(report Report) {
	if o.Log == nil {
		return
	}
	if _, set := os.LookupEnv(quicGoWarning); !set {
		_ = os.Setenv(quicGoWarning, "true") // costs a second line if it fails
	}
	o.Log.Warn("UDP socket buffers are smaller than wanted; raise net.core.rmem_max and net.core.wmem_max",
		slog.Int("wantedBytes", report.Wanted),
		slog.Int("readBytes", report.ReadBuffer), slog.Int("writeBytes", report.WriteBuffer))
}
