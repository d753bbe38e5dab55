package main

import (
	"fmt"
	"io"
	"regexp"
	"sync"
	"time"

	"github.com/quic-go/quic-go"

	"felix.dev/felix/broker/wire"
)

// printer writes whole lines.
type printer struct {
	start time.Time
	show  int // bytes of a binary payload

	mu  sync.Mutex
	out io.Writer
}

func (p *printer) line(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.out, "%9.4f %s\n", time.Since(p.start).Seconds(), text)
}

func streamName(kind string, id quic.StreamID) string { return fmt.Sprintf("%s%d", kind, id) }

// frameScanner finds the frames in the bytes of one direction of a stream. It keeps only what it will print.
type frameScanner struct {
	emit func(string)
	show int

	header  []byte
	current wire.Header
	payload []byte // its beginning
	missing int    // bytes of the payload that are still to come
	lost    bool   // no boundary is known any more
}

// maxMessage is how much of a JSON message is printed.
const maxMessage = 4 << 10

func (f *frameScanner) feed(b []byte) {
	for len(b) > 0 && !f.lost {
		if len(f.header) < wire.HeaderLen {
			n := min(wire.HeaderLen-len(f.header), len(b))
			f.header, b = append(f.header, b[:n]...), b[n:]
			if len(f.header) < wire.HeaderLen {
				return
			}
			h, err := wire.ParseHeader(f.header)
			if err != nil {
				f.emit(fmt.Sprintf("not a frame that we know: %v: % x", err, f.header))
				if f.lost = h == (wire.Header{}); f.lost {
					return
				}
			}
			f.current, f.missing = h, int(h.Length)
		}
		n := min(f.missing, len(b))
		keep := min(n, max(0, f.limit()-len(f.payload)))
		f.payload = append(f.payload, b[:keep]...)
		f.missing -= n
		b = b[n:]
		if f.missing == 0 {
			f.emit(f.text())
			f.header, f.payload = f.header[:0], f.payload[:0]
		}
	}
}

func (f *frameScanner) limit() int {
	if f.current.Flags == 0 {
		return maxMessage
	}
	return f.show
}

var secret = regexp.MustCompile(`"token":"[^"]*"`)

func (f *frameScanner) text() string {
	h := f.current
	if h.Flags == 0 {
		return fmt.Sprintf("%s (%d bytes)", secret.ReplaceAll(f.payload, []byte(`"token":"(hidden)"`)), h.Length)
	}
	kind, err := h.Kind()
	if err != nil {
		return fmt.Sprintf("flags %#04x, %d bytes: %v", uint16(h.Flags), h.Length, err)
	}
	return fmt.Sprintf("%s, flags %#04x, %d bytes: % x", kind, uint16(h.Flags), h.Length, f.payload)
}

// rest says what was left when the stream ended, if it did so inside a frame.
func (f *frameScanner) rest() string {
	switch {
	case len(f.header) == 0 || f.lost:
		return ""
	case len(f.header) < wire.HeaderLen:
		return fmt.Sprintf(" inside a header, after % x", f.header)
	}
	return fmt.Sprintf(" inside a frame with flags %#04x, %d bytes missing", uint16(f.current.Flags), f.missing)
}
