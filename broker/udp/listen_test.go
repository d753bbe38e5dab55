package udp

import (
	"bytes"
	"context"
	"log/slog"
	"math"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

// listen opens a socket on 127.0.0.1 for the length of the test.
func listen(t testing.TB, o Options) (*Conn, Report) {
	t.Helper()
	c, report, err := Listen(context.Background(), "127.0.0.1:0", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return c, report
}

func addrOf(t testing.TB, c *Conn) *net.UDPAddr {
	t.Helper()
	addr, ok := c.LocalAddr().(*net.UDPAddr)
	if !ok {
		t.Fatalf("local address is a %T", c.LocalAddr())
	}
	return addr
}

func TestListenRefusesBadOptions(t *testing.T) {
	_, _, err := Listen(context.Background(), "127.0.0.1:0", Options{ReadBuffer: -1, WriteBuffer: -1})
	if err == nil || !strings.Contains(err.Error(), "read buffer") || !strings.Contains(err.Error(), "write buffer") {
		t.Errorf("error %v, want both problems", err)
	}
}

func TestListenErrors(t *testing.T) {
	if _, _, err := Listen(context.Background(), "127.0.0.1:nonsense", Options{}); err == nil {
		t.Error("a bad address was accepted")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := Listen(ctx, "localhost:0", Options{}); err == nil {
		t.Error("a context that is over was accepted")
	}
	c, _ := listen(t, Options{})
	if _, _, err := Listen(context.Background(), c.LocalAddr().String(), Options{}); err == nil {
		t.Error("an address in use was accepted")
	}
}

// B64: buffers smaller than wanted are one line that names the wanted size.
func TestB64OneLineForSmallBuffers(t *testing.T) {
	t.Setenv(quicGoWarning, "")
	if err := os.Unsetenv(quicGoWarning); err != nil { // t.Setenv puts back what was there
		t.Fatal(err)
	}
	var out bytes.Buffer
	// No kernel grants this much, whatever the process may do.
	_, report := listen(t, Options{ReadBuffer: math.MaxInt32, Log: slog.New(slog.NewTextHandler(&out, nil))})
	if report.ReadBuffer == 0 {
		t.Skip("sizes of socket buffers cannot be read here")
	}
	if report.Wanted != math.MaxInt32 || report.ReadBuffer >= report.Wanted {
		t.Errorf("report %+v", report)
	}
	if n := strings.Count(out.String(), "\n"); n != 1 || !strings.Contains(out.String(), "wantedBytes=2147483647") {
		t.Errorf("%d lines: %s", n, out.String())
	}
	if os.Getenv(quicGoWarning) == "" {
		t.Error("quic-go would write a line of its own")
	}
}

func TestNoLineForLargeBuffers(t *testing.T) {
	t.Setenv(quicGoWarning, "")
	if err := os.Unsetenv(quicGoWarning); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	listen(t, Options{ReadBuffer: 1 << 10, WriteBuffer: 1 << 10, Log: slog.New(slog.NewTextHandler(&out, nil))})
	if out.Len() != 0 {
		t.Errorf("logged %s", out.String())
	}
	if _, set := os.LookupEnv(quicGoWarning); set {
		t.Error("quic-go's own line was turned off without need")
	}
}

// What net.PacketConn promises holds with and without GRO.
func TestPacketConn(t *testing.T) {
	for name, o := range map[string]Options{"plain": {}, "GRO": {GRO: true}} {
		t.Run(name, func(t *testing.T) {
			a, _ := listen(t, o)
			b, _ := listen(t, o)
			for _, payload := range []string{"one", "", "three"} {
				if _, err := a.WriteTo([]byte(payload), b.LocalAddr()); err != nil {
					t.Fatal(err)
				}
			}
			buf := make([]byte, 100)
			for _, want := range []string{"one", "", "three"} {
				n, from, err := b.ReadFrom(buf)
				if err != nil || string(buf[:n]) != want || from.String() != a.LocalAddr().String() {
					t.Errorf("%q from %v, %v; want %q", buf[:n], from, err, want)
				}
			}
			if _, _, err := a.WriteMsgUDP([]byte("msg"), nil, addrOf(t, b)); err != nil {
				t.Fatal(err)
			}
			n, _, _, from, err := b.ReadMsgUDP(buf, make([]byte, 100))
			if err != nil || string(buf[:n]) != "msg" || from.String() != a.LocalAddr().String() {
				t.Errorf("%q from %v, %v", buf[:n], from, err)
			}

			here := &net.UDPAddr{Port: addrOf(t, b).Port}
			if _, _, err := a.WriteMsgUDP([]byte("here"), nil, here); err != nil {
				t.Fatal(err)
			}
			if n, _, err := b.ReadFrom(buf); err != nil || string(buf[:n]) != "here" {
				t.Errorf("%q, %v", buf[:n], err)
			}
			if _, _, err := a.WriteMsgUDP([]byte("nowhere"), nil, nil); err == nil {
				t.Error("a send without an address")
			}

			if err := b.SetDeadline(time.Now().Add(-time.Second)); err != nil {
				t.Fatal(err)
			}
			if _, _, err := b.ReadFrom(buf); !os.IsTimeout(err) {
				t.Errorf("read behind the deadline: %v", err)
			}
			if _, err := b.WriteTo(buf, a.LocalAddr()); !os.IsTimeout(err) {
				t.Errorf("write behind the deadline: %v", err)
			}
			if err := b.SetWriteDeadline(time.Time{}); err != nil {
				t.Fatal(err)
			}
			if _, err := b.WriteTo(buf, a.LocalAddr()); err != nil {
				t.Error(err)
			}
		})
	}
}

// Close ends a read that waits.
func TestCloseEndsRead(t *testing.T) {
	for name, o := range map[string]Options{"plain": {}, "GRO": {GRO: true}} {
		t.Run(name, func(t *testing.T) {
			c, _ := listen(t, o)
			done := make(chan error, 1)
			go func() {
				_, _, err := c.ReadFrom(make([]byte, 10))
				done <- err
			}()
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			if err := <-done; err == nil {
				t.Error("read returned without an error")
			}
		})
	}
}
