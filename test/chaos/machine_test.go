//go:build chaos

package chaos

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
)

func freeUDP(t *testing.T) string {
	t.Helper()
	return free(t, func(addr string) (io.Closer, error) { return net.ListenPacket("udp", addr) })
}

func freeTCP(t *testing.T) string {
	t.Helper()
	return free(t, func(addr string) (io.Closer, error) { return net.Listen("tcp", addr) })
}

// free finds an address below those that the system gives to whoever connects: brokers connect to each other all the time, and
// one that is away must find its port as it has left it.
func free(t *testing.T, listen func(addr string) (io.Closer, error)) string {
	t.Helper()
	for range 200 {
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(10_000+rand.IntN(22_000)))
		if c, err := listen(addr); err == nil {
			_ = c.Close() // nobody has come
			return addr
		}
	}
	t.Fatal("no port is free")
	return ""
}

// peakMemory is the most that the process has held, in bytes.
func peakMemory(t *testing.T, p *process) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Skip(err)
	}
	for line := range strings.Lines(string(text)) {
		var kib int64
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kib); n == 1 {
			return kib << 10
		}
	}
	t.Skip("the system does not say")
	return 0
}
