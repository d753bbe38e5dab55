package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"github.com/quic-go/quic-go"

	"felix.dev/felix/broker/metrics"
	"felix.dev/felix/broker/udp"
)

// ALPN is the protocol name of the client listener.
const ALPN = "felix/1"

// tlsConfig accepts clients that offer no protocol, which is how the published
// ones dial by default, and picks ours for those that offer some. One
// configuration cannot do both: a server that lists protocols must refuse a client
// that lists none (RFC 9001, 8.1).
func tlsConfig(cfg *Config) *tls.Config {
	named := &tls.Config{
		MinVersion:     tls.VersionTLS13,
		GetCertificate: cfg.Certificate,
		NextProtos:     []string{ALPN},
		ClientAuth:     cfg.ClientAuth.tls(),
		// A session that is resumed is not held against the CAs of today.
		SessionTicketsDisabled: cfg.ClientAuth != ClientAuthNone,
	}
	unnamed := named.Clone()
	unnamed.NextProtos = nil
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		NextProtos: []string{ALPN},
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			c := named
			if len(hello.SupportedProtos) == 0 && !cfg.RequireALPN {
				c = unnamed
			}
			if cfg.ClientAuth == ClientAuthNone {
				return c, nil
			}
			c = c.Clone()
			c.ClientCAs = cfg.ClientCAs()
			return c, nil
		},
	}
}

func quicConfig(cfg *Config, w *windows) *quic.Config {
	return &quic.Config{
		MaxIdleTimeout:                 cfg.IdleTimeout,
		KeepAlivePeriod:                cfg.IdleTimeout / 3,
		InitialStreamReceiveWindow:     uint64(min(initialStreamWindow, cfg.StreamWindow)),
		MaxStreamReceiveWindow:         uint64(cfg.StreamWindow),
		InitialConnectionReceiveWindow: uint64(min(initialConnectionWindow, cfg.ConnectionWindow)),
		MaxConnectionReceiveWindow:     uint64(cfg.ConnectionWindow),
		AllowConnectionWindowIncrease:  w.allow,
		MaxIncomingStreams:             int64(cfg.MaxStreams),
		MaxIncomingUniStreams:          int64(cfg.MaxUniStreams),
	}
}

// socket is the UDP socket and the QUIC endpoint on it.
type socket struct {
	conn      *udp.Conn
	transport *quic.Transport
	listener  *quic.Listener
	network   Network
}

// quietLibrary keeps quic-go from writing a line of its own, to the process's
// standard log, about the socket buffers that were just reported here. The switch
// is an environment variable and nothing else.
var quietLibrary = sync.OnceFunc(func() {
	const name = "QUIC_GO_DISABLE_RECEIVE_BUFFER_WARNING"
	if _, set := os.LookupEnv(name); !set {
		_ = os.Setenv(name, "true") // its only error is a malformed name
	}
})

func listen(ctx context.Context, cfg *Config, g *gate, w *windows, m *metrics.Metrics) (*socket, error) {
	conn, report, err := udp.Listen(ctx, cfg.Addr, udp.Options{GRO: !cfg.DisableGRO, Log: cfg.Log})
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	cfg.Log.Info("UDP socket open", slog.String("addr", conn.LocalAddr().String()),
		slog.Bool("gso", report.GSO), slog.Bool("gro", report.GRO),
		slog.Int("readBufferBytes", report.ReadBuffer), slog.Int("writeBufferBytes", report.WriteBuffer),
		slog.Int("wantedBufferBytes", report.Wanted))
	if !report.GSO {
		cfg.Log.Warn("datagrams are sent one by one: the kernel has no UDP segmentation offload, or it is disabled; sending costs about twice the CPU")
	}
	m.Network.ReceiveBuffer.Set(float64(report.ReadBuffer))
	m.Network.ReceiveBufferWanted.Set(float64(report.Wanted))
	m.Network.SendBuffer.Set(float64(report.WriteBuffer))
	m.Network.SendBufferWanted.Set(float64(report.Wanted))
	m.Network.SegmentOffload.Set(oneIf(report.GSO))
	m.Network.ReceiveOffload.Set(oneIf(report.GRO))

	quietLibrary()
	s := &socket{conn: conn, network: Network{GSO: report.GSO, GRO: report.GRO}}
	s.transport = &quic.Transport{
		Conn:                conn,
		StatelessResetKey:   cfg.StatelessResetKey,
		ConnContext:         g.connContext,
		VerifySourceAddress: g.verifyAddress,
	}
	if s.listener, err = s.transport.Listen(tlsConfig(cfg), quicConfig(cfg, w)); err != nil {
		s.close()
		return nil, fmt.Errorf("server: listen on %s: %w", cfg.Addr, err)
	}
	return s, nil
}

func (s *socket) close() {
	_ = s.transport.Close() // its only error is that of the socket, which is closed next
	_ = s.conn.Close()      // nothing is written any more
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
