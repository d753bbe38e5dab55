package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/quic-go/quic-go"
)

const alpn = "felix/1"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "framelog:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	listen := flag.String("listen", "127.0.0.1:0", "address for the client")
	to := flag.String("to", "127.0.0.1:5000", "the broker's address")
	certFile := flag.String("cert", "", "certificate to show to the client, trusted of the broker as well (PEM)")
	keyFile := flag.String("key", "", "its key (PEM)")
	show := flag.Int("bytes", 96, "how many bytes of a binary frame to print")
	flag.Parse()

	pair, err := tls.LoadX509KeyPair(*certFile, *keyFile)
	if err != nil {
		return err
	}
	pem, err := os.ReadFile(*certFile)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)

	listener, err := quic.ListenAddr(*listen, serverTLS(pair), quicConfig())
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }() // the process ends
	p := &printer{out: os.Stdout, start: time.Now(), show: *show}
	p.line("listening on %s for %s", listener.Addr(), *to)

	var all sync.WaitGroup
	defer all.Wait()
	for id := 1; ; id++ {
		down, err := listener.Accept(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		all.Go(func() {
			c := &connection{id: id, down: down, print: p}
			if err := c.serve(ctx, *to, roots); err != nil {
				slog.Error("connection", slog.Int("id", id), slog.Any("error", err))
			}
		})
	}
}

// serverTLS accepts what the broker does: no protocol, or ours.
func serverTLS(pair tls.Certificate) *tls.Config {
	named := &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}, NextProtos: []string{alpn}}
	unnamed := named.Clone()
	unnamed.NextProtos = nil
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		NextProtos: []string{alpn},
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			if len(hello.SupportedProtos) == 0 {
				return unnamed, nil
			}
			return named, nil
		},
	}
}

func quicConfig() *quic.Config {
	return &quic.Config{
		MaxIdleTimeout: 30 * time.Second, KeepAlivePeriod: 10 * time.Second,
		MaxIncomingStreams: 4096, MaxIncomingUniStreams: 4096,
		MaxStreamReceiveWindow: 16 << 20, MaxConnectionReceiveWindow: 48 << 20,
	}
}

// connection is one of the client's, and its twin to the broker.
type connection struct {
	id    int
	down  *quic.Conn // to the client
	up    *quic.Conn // to the broker
	print *printer

	copies  sync.WaitGroup
	streams struct {
		sync.Mutex
		bidi, uni, events int
	}
}

func (c *connection) serve(ctx context.Context, to string, roots *x509.CertPool) error {
	state := c.down.ConnectionState().TLS
	c.print.line("c%d client %s, ALPN %q, server name %q", c.id, c.down.RemoteAddr(), state.NegotiatedProtocol, state.ServerName)
	cfg := &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: roots, ServerName: state.ServerName}
	if state.NegotiatedProtocol != "" {
		cfg.NextProtos = []string{state.NegotiatedProtocol}
	}
	var err error
	if c.up, err = quic.DialAddr(ctx, to, cfg, quicConfig()); err != nil {
		return errors.Join(err, c.down.CloseWithError(0, "framelog: no broker"))
	}
	var accepting sync.WaitGroup
	accepting.Go(func() { c.acceptBidi(ctx) })
	accepting.Go(func() { c.acceptUni(ctx, c.down, c.up, toBroker) })
	accepting.Go(func() { c.acceptUni(ctx, c.up, c.down, toClient) })

	select {
	case <-c.down.Context().Done():
		c.closeOther("client", c.down, c.up)
	case <-c.up.Context().Done():
		c.closeOther("broker", c.up, c.down)
	case <-ctx.Done():
		_ = c.down.CloseWithError(0, "framelog stops") // nobody is left to tell
		_ = c.up.CloseWithError(0, "framelog stops")
	}
	accepting.Wait()
	c.copies.Wait()
	s := &c.streams
	c.print.line("c%d over: the client opened %d bidirectional and %d unidirectional streams, the broker %d event streams", c.id, s.bidi, s.uni, s.events)
	return nil
}

func (c *connection) closeOther(who string, closed, other *quic.Conn) {
	cause := context.Cause(closed.Context())
	c.print.line("c%d closed by the %s: %v", c.id, who, cause)
	if app, ok := errors.AsType[*quic.ApplicationError](cause); ok {
		_ = other.CloseWithError(app.ErrorCode, app.ErrorMessage) // it may be gone as well
		return
	}
	_ = other.CloseWithError(0, "framelog: the other side is gone")
}
