//go:build unix

package bench

import "golang.org/x/sys/unix"

// ownCPU is the CPU time of this process in seconds, and its context switches.
func ownCPU() (cpu float64, switches int64) {
	var ru unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &ru); err != nil {
		return 0, 0
	}
	return float64(ru.Utime.Nano()+ru.Stime.Nano()) / 1e9, ru.Nvcsw + ru.Nivcsw
}
