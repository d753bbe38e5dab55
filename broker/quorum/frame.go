package quorum

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// frameKind says what a frame asks or answers. Kinds keep their letters: brokers of
// different versions speak to each other.
type frameKind byte

const (
	frameHello      frameKind = 'H' // the acceptor's first: empty, or why it refuses
	frameHeartbeats frameKind = 'B' // of any number of groups
	frameAppend     frameKind = 'A'
	frameVote       frameKind = 'V'
	framePreVote    frameKind = 'W'
	frameInstall    frameKind = 'I'
	frameTimeoutNow frameKind = 'T'
	frameOK         frameKind = 'o' // the answer to the frame with this id
	frameError      frameKind = 'e' // likewise: a message for people
	frameProgress   frameKind = 'p' // likewise: not done yet
)

// frame is one message on a connection: 4 bytes length of what follows, 1 byte kind,
// 4 bytes group, 8 bytes id, then the body. Integers are big-endian.
type frame struct {
	kind  frameKind
	group uint32
	id    uint64
	body  []byte
}

const (
	frameHeaderBytes = 4 + 1 + 4 + 8
	// maxBodyBytes bounds what a peer can make this broker hold for one frame.
	maxBodyBytes = maxManifestBytes + 1<<20
	// trustedBytes are allocated at once on the word of a header, more only as it arrives.
	trustedBytes = 1 << 20

	// writeTimeout bounds writing a small frame; a large one has more time, as if the
	// link carried slowestLink.
	writeTimeout = 5 * time.Second
	slowestLink  = 256 << 10 // bytes a second
)

// wire reads and writes frames. One goroutine reads; any may write.
type wire struct {
	conn net.Conn
	r    *bufio.Reader

	mu sync.Mutex
	w  *bufio.Writer
}

func newWire(conn net.Conn) *wire {
	return &wire{conn: conn, r: bufio.NewReaderSize(conn, 32<<10), w: bufio.NewWriterSize(conn, 32<<10)}
}

// write sends one frame whose body is in parts. After an error the connection is useless.
func (c *wire) write(kind frameKind, group uint32, id uint64, parts ...[]byte) error {
	size := 0
	for _, p := range parts {
		size += len(p)
	}
	var head [frameHeaderBytes]byte
	binary.BigEndian.PutUint32(head[:], uint32(frameHeaderBytes-4+size))
	head[4] = byte(kind)
	binary.BigEndian.PutUint32(head[5:], group)
	binary.BigEndian.PutUint64(head[9:], id)

	c.mu.Lock()
	defer c.mu.Unlock()
	allowed := writeTimeout + time.Duration(size)*time.Second/slowestLink
	if err := c.conn.SetWriteDeadline(time.Now().Add(allowed)); err != nil {
		return err
	}
	if _, err := c.w.Write(head[:]); err != nil {
		return err
	}
	for _, p := range parts {
		if _, err := c.w.Write(p); err != nil {
			return err
		}
	}
	return c.w.Flush()
}

// read returns the next frame. Its body is the caller's.
func (c *wire) read() (frame, error) {
	var head [frameHeaderBytes]byte
	if _, err := io.ReadFull(c.r, head[:]); err != nil {
		return frame{}, err
	}
	size := int64(binary.BigEndian.Uint32(head[:])) - (frameHeaderBytes - 4)
	if size < 0 || size > maxBodyBytes {
		return frame{}, fmt.Errorf("quorum: frame of %d bytes from %s: more than a peer may send", size, c.conn.RemoteAddr())
	}
	f := frame{kind: frameKind(head[4]), group: binary.BigEndian.Uint32(head[5:]), id: binary.BigEndian.Uint64(head[9:])}
	var err error
	f.body, err = readBody(c.r, int(size))
	return f, err
}

func readBody(r io.Reader, size int) ([]byte, error) {
	body := make([]byte, min(size, trustedBytes))
	for have := 0; ; {
		n, err := io.ReadFull(r, body[have:])
		have += n
		if err != nil {
			return nil, err
		}
		if have == size {
			return body, nil
		}
		grown := make([]byte, min(size, 2*len(body)))
		copy(grown, body)
		body = grown
	}
}

func (c *wire) close() { _ = c.conn.Close() } // whoever reads learns of it
