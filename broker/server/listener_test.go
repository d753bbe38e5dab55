package server

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/quic-go/quic-go"
)

// The ALPN table of the protocol: nothing offered is fine, ours is picked, others
// are refused with the TLS alert no_application_protocol.
func TestALPN(t *testing.T) {
	const noApplicationProtocol = 0x100 + 120
	for _, tt := range []struct {
		name    string
		offer   []string
		require bool
		picked  string
		refused bool
	}{
		{name: "nothing", offer: nil, picked: ""},
		{name: "ours", offer: []string{"felix/1"}, picked: "felix/1"},
		{name: "ours among others", offer: []string{"h3", "felix/1"}, picked: "felix/1"},
		{name: "only others", offer: []string{"h3"}, refused: true},
		{name: "the one between brokers", offer: []string{"felix-internal/1"}, refused: true},
		{name: "nothing where it is required", offer: nil, require: true, refused: true},
		{name: "ours where it is required", offer: []string{"felix/1"}, require: true, picked: "felix/1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := start(t, func(c *Config) { c.RequireALPN = tt.require })
			ctx, cancel := context.WithTimeout(t.Context(), testWait)
			defer cancel()
			conn, err := quic.DialAddr(ctx, h.server.Addr().String(), clientTLS(tt.offer...), nil)
			if tt.refused {
				refused, ok := errors.AsType[*quic.TransportError](err)
				if !ok || refused.ErrorCode != noApplicationProtocol {
					t.Fatalf("got %v, want alert 120", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.CloseWithError(0, "") }()
			state := conn.ConnectionState()
			if got := state.TLS.NegotiatedProtocol; got != tt.picked {
				t.Errorf("picked %q, want %q", got, tt.picked)
			}
			if state.TLS.Version != tls.VersionTLS13 || state.Used0RTT {
				t.Errorf("TLS version %#x, 0-RTT %v", state.TLS.Version, state.Used0RTT)
			}
			(&client{t: t, conn: conn}).authed()
		})
	}
}

// B64: the state of the socket is one line, with the size wanted, and at most one
// more that complains.
func TestStartSaysWhatTheSocketHas(t *testing.T) {
	lines := newLogLines()
	start(t, func(c *Config) { c.Log = slog.New(lines) })
	if lines.count(slog.LevelInfo) != 1 || lines.count(slog.LevelWarn) > 2 || lines.count(slog.LevelError) != 0 {
		t.Fatalf("log lines: %+v", lines.lines)
	}
	wanted := false
	for _, l := range lines.lines {
		l.Attrs(func(a slog.Attr) bool {
			wanted = wanted || a.Key == "wantedBufferBytes" && a.Value.Int64() > 0
			return true
		})
	}
	if !wanted {
		t.Error("no line names the buffer size wanted")
	}
}

func TestConfigValidateReportsEverything(t *testing.T) {
	c := Config{MaxStreams: -1, Advertise: "nohost", StreamWindow: 64 << 20, MaxRecordBytes: 1 << 30, IngressBytes: 1}
	err := c.Validate()
	if err == nil {
		t.Fatal("accepted")
	}
	// Four missing parts, and one for each field set.
	if n := strings.Count(err.Error(), "\n") + 1; n != 9 {
		t.Errorf("%d problems reported, want 9:\n%v", n, err)
	}
}
