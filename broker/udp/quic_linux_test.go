package udp

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"log/slog"
	"math/big"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"golang.org/x/sys/unix"
)

// tlsConfig is a server with a certificate that no client checks.
func tlsConfig(t *testing.T) *tls.Config {
	t.Helper()
	pub, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, pub, key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{"test"},
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
	}
}

// transfer sends size bytes from server to client over QUIC on these sockets
// and returns the state of the server's connection.
func transfer(t *testing.T, server, client *Conn, size int, started func()) quic.ConnectionState {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	st, ct := &quic.Transport{Conn: server}, &quic.Transport{Conn: client}
	defer func() { _, _ = st.Close(), ct.Close() }()
	for _, c := range []*Conn{server, client} {
		if err := c.SetReadDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
	ln, err := st.Listen(tlsConfig(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()

	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<14)
	state := make(chan quic.ConnectionState, 1)
	sent := make(chan [32]byte, 1)
	served := make(chan error, 1)
	go func() {
		served <- func() error {
			conn, err := ln.Accept(ctx)
			if err != nil {
				return err
			}
			s, err := conn.OpenUniStreamSync(ctx)
			if err != nil {
				return err
			}
			sum := sha256.New()
			for left := size; left > 0; left -= len(data) {
				data := data[:min(left, len(data))]
				sum.Write(data)
				if _, err := s.Write(data); err != nil {
					return err
				}
			}
			state <- conn.ConnectionState()
			sent <- [32]byte(sum.Sum(nil))
			return s.Close()
		}()
	}()
	conn, err := ct.Dial(ctx, server.LocalAddr(), &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{"test"}, InsecureSkipVerify: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if started != nil {
		started()
	}
	s, err := conn.AcceptUniStream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.New()
	if n, err := io.Copy(sum, s); err != nil || n != int64(size) {
		t.Fatalf("%d bytes of %d, %v", n, size, err)
	}
	if err := <-served; err != nil {
		t.Fatal(err)
	}
	if [32]byte(sum.Sum(nil)) != <-sent {
		t.Error("other bytes than were sent")
	}
	if err := conn.CloseWithError(0, ""); err != nil {
		t.Error(err)
	}
	return <-state
}

// countTrains counts what quic-go sends with a segment size, and gives the
// n-th of them to fail instead of the socket.
func countTrains(c *Conn, fail map[int64]error) *atomic.Int64 {
	var trains atomic.Int64
	c.writeMsg = func(b, oob []byte, addr *net.UDPAddr) (int, int, error) {
		if hasSegmentSize(oob) {
			if err := fail[trains.Add(1)]; err != nil {
				return 0, 0, err
			}
		}
		return c.writeMsgUDP(b, oob, addr)
	}
	return &trains
}

// quic-go takes the wrapper for a UDP socket: it sends trains through it and
// reads through ReadBatch.
func TestQUIC(t *testing.T) {
	for name, o := range map[string]Options{"plain": {}, "GRO": {GRO: true}} {
		t.Run(name, func(t *testing.T) {
			server, report := listen(t, o)
			client, _ := listen(t, o)
			trains := countTrains(server, nil)
			state := transfer(t, server, client, 8<<20, nil)
			if state.GSO != report.GSO {
				t.Errorf("quic-go has GSO %v, the report %v", state.GSO, report.GSO)
			}
			if n := trains.Load(); report.GSO && n == 0 {
				t.Error("no trains were sent")
			}
		})
	}
}

// B61: offload turned off by the environment.
func TestB61OffloadOff(t *testing.T) {
	t.Setenv("QUIC_GO_DISABLE_GSO", "true")
	server, report := listen(t, Options{GRO: true})
	client, _ := listen(t, Options{GRO: true})
	trains := countTrains(server, nil)
	if state := transfer(t, server, client, 4<<20, nil); state.GSO || report.GSO || trains.Load() != 0 {
		t.Errorf("GSO %v, report %+v, %d trains", state.GSO, report, trains.Load())
	}
}

// B61: the kernel refuses a train, the first one or after it had worked: the
// connection survives, its bytes arrive, and it sends no more trains.
func TestB61TrainRefused(t *testing.T) {
	if raceDetector {
		t.Skip("quic-go's fallback is not clean under the race detector")
	}
	for name, tt := range map[string]struct {
		at  int64
		err error
	}{
		"EIO at once":                  {1, unix.EIO},
		"EIO after it had worked":      {20, unix.EIO},
		"EINVAL at once":               {1, unix.EINVAL},
		"EINVAL after it had worked":   {20, unix.EINVAL},
		"EMSGSIZE once, as by a probe": {20, unix.EMSGSIZE},
	} {
		t.Run(name, func(t *testing.T) {
			server, report := listen(t, Options{GRO: true})
			client, _ := listen(t, Options{GRO: true})
			if !report.GSO {
				t.Skip("no GSO in this kernel")
			}
			refused := &net.OpError{Op: "write", Net: "udp", Err: os.NewSyscallError("sendmsg", tt.err)}
			trains := countTrains(server, map[int64]error{tt.at: refused})
			transfer(t, server, client, 4<<20, nil)
			n := trains.Load()
			if errors.Is(tt.err, unix.EMSGSIZE) {
				if n <= tt.at {
					t.Errorf("%d trains; one that is too large must not end them", n)
				}
				return
			}
			// Some may have been formed already when the first was refused.
			if n < tt.at || n > tt.at+64 {
				t.Errorf("%d trains, the refused one was number %d", n, tt.at)
			}
		})
	}
}

// B64: buffers of 208 KiB and a burst of 100 MB: one line, and all of it
// arrives.
func TestB64SmallBuffersDeliver(t *testing.T) {
	t.Setenv(quicGoWarning, "")
	if err := os.Unsetenv(quicGoWarning); err != nil {
		t.Fatal(err)
	}
	var lines, std bytes.Buffer
	log.SetOutput(&std)
	defer log.SetOutput(os.Stderr)
	o := Options{GRO: true, ReadBuffer: 1<<31 - 1, Log: slog.New(slog.NewTextHandler(&lines, nil))}
	client, _ := listen(t, o)
	server, _ := listen(t, Options{GRO: true})
	size := 100 << 20
	if testing.Short() {
		size = 10 << 20
	}
	transfer(t, server, client, size, func() {
		// A privileged process gets what it asks for, here and from quic-go.
		for _, c := range []*Conn{client, server} {
			if err := c.SetReadBuffer(208 << 10); err != nil {
				t.Error(err)
			}
			if err := c.SetWriteBuffer(208 << 10); err != nil {
				t.Error(err)
			}
		}
	})
	if n := strings.Count(lines.String(), "\n"); n != 1 || std.Len() != 0 {
		t.Errorf("%d lines, want 1: %s%s", n, lines.String(), std.String())
	}
}
