package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// pacer waits for short times exactly. The runtime's own timers wake an idle
// process up to a millisecond late, which would be most of what an open loop
// measures; a timer of the kernel is on time, and is waited for as a socket is. It
// belongs to one goroutine.
type pacer struct {
	f  *os.File
	fd int
}

func newPacer() (*pacer, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("bench: timer: %w", err)
	}
	return &pacer{f: os.NewFile(uintptr(fd), "timerfd"), fd: fd}, nil
}

// wait returns after d, or when ctx ends.
func (p *pacer) wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}
	if err := unix.TimerfdSettime(p.fd, 0, &spec, nil); err != nil {
		return fmt.Errorf("bench: timer: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = p.f.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	var expirations [8]byte
	_, err := p.f.Read(expirations[:])
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("bench: timer: %w", err)
	case binary.NativeEndian.Uint64(expirations[:]) == 0:
		return errors.New("bench: timer: it has not expired")
	}
	return nil
}

func (p *pacer) close() { _ = p.f.Close() }
