package udp

import (
	"errors"
	"log/slog"
)

// DefaultBuffer is asked for in each direction where Options leave it open.
const DefaultBuffer = 4 << 20

// Options of Listen.
type Options struct {
	// GRO asks for receiving with UDP_GRO.
	GRO bool
	// ReadBuffer and WriteBuffer are the socket buffers asked for, in bytes;
	// 0 means DefaultBuffer.
	ReadBuffer, WriteBuffer int
	// Log gets one line if a buffer is smaller than asked for; nil: no log.
	Log *slog.Logger
}

// Validate reports every problem at once.
func (o Options) Validate() error {
	var errs []error
	if o.ReadBuffer < 0 {
		errs = append(errs, errors.New("udp: read buffer is negative"))
	}
	if o.WriteBuffer < 0 {
		errs = append(errs, errors.New("udp: write buffer is negative"))
	}
	return errors.Join(errs...)
}

// Report says what the kernel granted.
type Report struct {
	GRO bool // datagrams are received in trains
	GSO bool // datagrams can be sent in trains; quic-go decides the same way
	// ReadBuffer and WriteBuffer are the sizes in effect, 0 if not known.
	ReadBuffer, WriteBuffer int
	// Wanted is the larger of the sizes asked for.
	Wanted int
}

// short says whether a buffer is known to be smaller than asked for.
func (r Report) short(o Options) bool {
	return r.ReadBuffer > 0 && r.ReadBuffer < o.ReadBuffer || r.WriteBuffer > 0 && r.WriteBuffer < o.WriteBuffer
}
