package udp

import (
	"encoding/binary"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"
)

// cmsg lays out one control message, padded as the kernel does.
func cmsg(level, typ int32, body []byte) []byte {
	b := make([]byte, unix.CmsgSpace(len(body)))
	binary.NativeEndian.PutUint64(b, uint64(unix.CmsgLen(len(body))))
	binary.NativeEndian.PutUint32(b[8:], uint32(level))
	binary.NativeEndian.PutUint32(b[12:], uint32(typ))
	copy(b[unix.CmsgLen(0):], body)
	return b
}

func word(v uint32) []byte { return binary.NativeEndian.AppendUint32(nil, v) }

func segmentMsg(n int) []byte { return cmsg(unix.SOL_UDP, unix.UDP_GRO, word(uint32(n))) }

// messages for a batch, each with its own storage.
func messages(n, size, oob int) []ipv4.Message {
	ms := make([]ipv4.Message, n)
	for i := range ms {
		ms[i] = ipv4.Message{Buffers: [][]byte{make([]byte, size)}, OOB: make([]byte, oob)}
	}
	return ms
}

func drain(tr *train, size, oob int) (payloads []string, oobs [][]byte, flags int) {
	for !tr.done() {
		m := &messages(1, size, oob)[0]
		tr.next(m)
		payloads = append(payloads, string(m.Buffers[0][:m.N]))
		oobs = append(oobs, m.OOB[:m.NN])
		flags |= m.Flags
	}
	return payloads, oobs, flags
}

func TestTrain(t *testing.T) {
	tos := cmsg(unix.IPPROTO_IP, unix.IP_TOS, []byte{2})
	tclass := cmsg(unix.IPPROTO_IPV6, unix.IPV6_TCLASS, word(2))
	info4 := cmsg(unix.IPPROTO_IP, unix.IP_PKTINFO, make([]byte, 12))
	info6 := cmsg(unix.IPPROTO_IPV6, unix.IPV6_PKTINFO, make([]byte, 20))
	join := func(bs ...[]byte) []byte {
		var out []byte
		for _, b := range bs {
			out = append(out, b...)
		}
		return out
	}
	for name, tt := range map[string]struct {
		data    string
		oob     []byte
		want    []string
		wantOOB []byte
	}{
		"one datagram":          {"abc", tos, []string{"abc"}, tos},
		"no control messages":   {"abc", nil, []string{"abc"}, nil},
		"train":                 {"aabbc", join(tos, segmentMsg(2)), []string{"aa", "bb", "c"}, tos},
		"even train":            {"aabb", join(segmentMsg(2), tos), []string{"aa", "bb"}, tos},
		"IPv6 with packet info": {"aab", join(tclass, segmentMsg(2), info6), []string{"aa", "b"}, join(tclass, info6)},
		"IPv4 with packet info": {"aab", join(info4, tos, segmentMsg(2)), []string{"aa", "b"}, join(info4, tos)},
		"no bytes":              {"", tos, []string{""}, tos},
		"segment above size":    {"abc", segmentMsg(1000), []string{"abc"}, nil},
		"segment 0":             {"abc", segmentMsg(0), []string{"abc"}, nil},
		"segment negative":      {"abc", cmsg(unix.SOL_UDP, unix.UDP_GRO, word(1<<31)), []string{"abc"}, nil},
		"segment without size":  {"abc", cmsg(unix.SOL_UDP, unix.UDP_GRO, nil), []string{"abc"}, nil},
		"cut short":             {"aab", join(segmentMsg(2), tos[:10]), []string{"aa", "b"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var tr train
			for range 2 { // storage is used again
				tr.load([]byte(tt.data), tt.oob, &net.UDPAddr{})
				got, oobs, flags := drain(&tr, 100, 128)
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
				for i, oob := range oobs {
					if string(oob) != string(tt.wantOOB) {
						t.Errorf("control messages of datagram %d: %x, want %x", i, oob, tt.wantOOB)
					}
				}
				if flags != 0 {
					t.Errorf("flags %#x", flags)
				}
			}
		})
	}
}

// A buffer smaller than a segment cuts that datagram and no other.
func TestTrainSmallBuffers(t *testing.T) {
	var tr train
	tr.load([]byte("aaaabbbbc"), segmentMsg(4), nil)
	got, _, flags := drain(&tr, 3, 0)
	if diff := cmp.Diff([]string{"aaa", "bbb", "c"}, got); diff != "" || flags != unix.MSG_TRUNC {
		t.Errorf("flags %#x -want +got:\n%s", flags, diff)
	}
	// Several buffers are filled one after another.
	tr.load([]byte("aaabbbbc"), segmentMsg(7), nil)
	m := ipv4.Message{Buffers: [][]byte{make([]byte, 3), make([]byte, 10)}}
	tr.next(&m)
	if m.N != 7 || string(m.Buffers[0])+string(m.Buffers[1][:4]) != "aaabbbb" {
		t.Errorf("%d bytes, %q", m.N, m.Buffers)
	}
	// No buffer at all still takes the datagram.
	m = ipv4.Message{}
	tr.next(&m)
	if m.N != 0 || m.Flags != unix.MSG_TRUNC || !tr.done() {
		t.Errorf("%+v, %+v", m, tr)
	}
}

// Control messages that do not fit are left out whole: quic-go gives its
// socket up on half a one.
func TestTrainSmallControlSpace(t *testing.T) {
	tos := cmsg(unix.IPPROTO_IP, unix.IP_TOS, []byte{2})
	info := cmsg(unix.IPPROTO_IP, unix.IP_PKTINFO, make([]byte, 12))
	all := append(append([]byte{}, tos...), info...)
	for space, want := range map[int]int{0: 0, len(tos) - 1: 0, len(tos): len(tos), len(all) - 1: len(tos), len(all): len(all)} {
		var tr train
		tr.load([]byte("x"), all, nil)
		m := messages(1, 10, space)[0]
		tr.next(&m)
		if m.NN != want || (m.Flags == unix.MSG_CTRUNC) != (want < len(all)) {
			t.Errorf("space %d: %d bytes, flags %#x, want %d", space, m.NN, m.Flags, want)
		}
	}
}

func BenchmarkTrain(b *testing.B) {
	b.ReportAllocs()
	data := []byte(strings.Repeat("x", 14*1452))
	oob := append(cmsg(unix.IPPROTO_IP, unix.IP_TOS, []byte{2}), segmentMsg(1452)...)
	ms := messages(8, 1452, 128)
	var tr train
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		tr.load(data, oob, nil)
		for i := 0; !tr.done(); i++ {
			tr.next(&ms[i%len(ms)])
		}
	}
}
