package udp

import (
	"encoding/binary"
	"errors"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// sendTrain sends data as datagrams of seg bytes in one call.
func sendTrain(t *testing.T, c *Conn, to *net.UDPAddr, data string, seg int, tos byte) {
	t.Helper()
	oob := cmsg(unix.SOL_UDP, unix.UDP_SEGMENT, binary.NativeEndian.AppendUint16(nil, uint16(seg)))
	oob = append(oob, cmsg(unix.IPPROTO_IP, unix.IP_TOS, binary.NativeEndian.AppendUint32(nil, uint32(tos)))...)
	if _, _, err := c.WriteMsgUDP([]byte(data), oob, to); err != nil {
		t.Fatal(err)
	}
}

// receiveTOS asks for the ECN bits, as quic-go does.
func receiveTOS(t *testing.T, c *Conn) {
	t.Helper()
	rc, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var serr error
	if err := rc.Control(func(fd uintptr) { serr = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_RECVTOS, 1) }); err != nil || serr != nil {
		t.Fatal(err, serr)
	}
}

// ecnOf is the TOS byte in the control messages.
func ecnOf(t *testing.T, oob []byte) int {
	t.Helper()
	for len(oob) > 0 {
		h, body, rest, err := unix.ParseOneSocketControlMessage(oob)
		if err != nil {
			t.Fatal(err)
		}
		if h.Level == unix.IPPROTO_IP && h.Type == unix.IP_TOS {
			return int(body[0])
		}
		if h.Level == unix.SOL_UDP {
			t.Error("the segment size was handed on")
		}
		oob = rest
	}
	return -1
}

// Trains from a real socket: cut up, in order, each datagram with the sender
// and the ECN bits of its own train, with and without GRO.
func TestReadBatch(t *testing.T) {
	for name, o := range map[string]Options{"plain": {}, "GRO": {GRO: true}} {
		t.Run(name, func(t *testing.T) {
			r, report := listen(t, o)
			if report.GRO != o.GRO {
				t.Skipf("report %+v: no GRO in this kernel", report)
			}
			receiveTOS(t, r)
			a, aReport := listen(t, Options{})
			b, _ := listen(t, Options{})
			if !aReport.GSO {
				t.Skip("no GSO in this kernel")
			}
			type datagram struct {
				Payload string
				From    string
				ECN     int
			}
			var want []datagram
			send := func(c *Conn, seg, n int, tos byte) {
				data := strings.Repeat(string('a'+tos), n)
				sendTrain(t, c, addrOf(t, r), data, seg, tos)
				for ; n > 0; n -= seg {
					want = append(want, datagram{data[:min(seg, n)], c.LocalAddr().String(), int(tos)})
				}
			}
			send(a, 1200, 1200*14+7, 2) // more than a batch
			send(b, 1000, 500, 1)       // one short datagram
			if _, err := a.WriteTo(nil, r.LocalAddr()); err != nil {
				t.Fatal(err)
			}
			want = append(want, datagram{"", a.LocalAddr().String(), 0})
			send(b, 600, 1200, 3)
			send(a, 1200, 1200*40, 1) // a large train

			var got []datagram
			reads := 0
			for len(got) < len(want) {
				ms := messages(8, 1500, 128)
				n, err := r.ReadBatch(ms, 0)
				if err != nil {
					t.Fatal(err)
				}
				reads++
				for _, m := range ms[:n] {
					got = append(got, datagram{string(m.Buffers[0][:m.N]), m.Addr.String(), ecnOf(t, m.OOB[:m.NN])})
					if m.Flags != 0 {
						t.Errorf("flags %#x", m.Flags)
					}
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestReadBatchSmallBuffers(t *testing.T) {
	r, report := listen(t, Options{GRO: true})
	s, sReport := listen(t, Options{})
	if !report.GRO || !sReport.GSO {
		t.Skip("no GRO or GSO in this kernel")
	}
	if n, err := r.ReadBatch(nil, 0); n != 0 || err != nil {
		t.Errorf("no messages: %d, %v", n, err)
	}
	sendTrain(t, s, addrOf(t, r), strings.Repeat("a", 600)+strings.Repeat("b", 600), 600, 0)
	buf := make([]byte, 100)
	for _, want := range []string{"a", "b"} {
		n, _, flags, _, err := r.ReadMsgUDP(buf, nil)
		if err != nil || n != 100 || string(buf) != strings.Repeat(want, 100) || flags&unix.MSG_TRUNC == 0 {
			t.Errorf("%d bytes %q, flags %#x, %v", n, buf[:n], flags, err)
		}
	}
}

// The steady state allocates nothing: the address of a peer is kept.
func TestReadAndWriteDoNotAllocate(t *testing.T) {
	r, report := listen(t, Options{GRO: true})
	s, _ := listen(t, Options{})
	if !report.GRO {
		t.Skip("no GRO in this kernel")
	}
	ms := messages(8, 1500, 128)
	to := addrOf(t, r)
	payload := []byte("payload")
	n := testing.AllocsPerRun(50, func() {
		if _, _, err := s.WriteMsgUDP(payload, nil, to); err != nil {
			t.Fatal(err)
		}
		if _, err := r.ReadBatch(ms, 0); err != nil {
			t.Fatal(err)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations for a write and a read", n)
	}
}

func TestReport(t *testing.T) {
	_, report := listen(t, Options{GRO: true, ReadBuffer: 300 << 10, WriteBuffer: 200 << 10})
	if report.Wanted != 300<<10 || report.ReadBuffer == 0 || report.WriteBuffer == 0 {
		t.Errorf("report %+v", report)
	}
	t.Setenv("QUIC_GO_DISABLE_GSO", "true")
	if _, report := listen(t, Options{}); report.GSO || report.GRO || report.Wanted != DefaultBuffer {
		t.Errorf("report %+v", report)
	}
}

// B61: only EINVAL, and only for a train, becomes the error that quic-go
// falls back on.
func TestB61TrainError(t *testing.T) {
	sys := func(e error) error { return &net.OpError{Op: "write", Err: os.NewSyscallError("sendmsg", e)} }
	segment := cmsg(unix.SOL_UDP, unix.UDP_SEGMENT, []byte{1, 2})
	tos := cmsg(unix.IPPROTO_IP, unix.IP_TOS, word(2))
	other := errors.New("other")
	for name, tt := range map[string]struct {
		err  error
		oob  []byte
		want error
	}{
		"EINVAL for a train":             {sys(unix.EINVAL), append(append([]byte{}, tos...), segment...), unix.EIO},
		"EINVAL for a datagram":          {sys(unix.EINVAL), tos, unix.EINVAL},
		"EINVAL, broken control message": {sys(unix.EINVAL), segment[:9], unix.EINVAL},
		"EIO":                            {sys(unix.EIO), segment, unix.EIO},
		"EMSGSIZE":                       {sys(unix.EMSGSIZE), segment, unix.EMSGSIZE},
		"not of the system":              {other, segment, other},
	} {
		if got := trainError(tt.err, tt.oob); !errors.Is(got, tt.want) {
			t.Errorf("%s: %v", name, got)
		}
	}
}
