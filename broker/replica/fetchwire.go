package replica

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"felix.dev/felix/broker/seglog"
	"felix.dev/felix/broker/wire"
)

// What brokers say to each other to fetch records, big-endian. Both sides are of one
// release or neighbours, so that it has a version and no more.
//
//	request   u8 version, u32 group, 16 bytes incarnation, u32 shard, u64 from, u32 max bytes
//	response  u8 status, u64 oldest, u64 next, u32 records, u32 bytes, u32 CRC-32C of the bytes
//	          per record: u8 kind, u8 flags (1: producer), u32 count, u64 base, i64 time,
//	          u32 length, with flag 1: u64 producer, u64 sequence; the frame
const (
	fetchVersion  = 1
	requestLen    = 1 + 4 + keyLen + 8 + 4
	responseLen   = 1 + 8 + 8 + 4 + 4 + 4
	recordHeader  = 1 + 1 + 4 + 8 + 8 + 4
	maxFetchBytes = 4 << 20
	// maxFetchPage is the largest response: one record may be larger than was asked for.
	maxFetchPage = maxFetchBytes + recordHeader + itemID + wire.HeaderLen + wire.MaxPayload

	statusOK         = 0
	statusNoGroup    = 1 // ask another broker
	statusNoShard    = 2 // next is how many entries are applied there
	statusTooOld     = 3 // the oldest that there is is in the response
	statusUnreadable = 4 // ask another broker
)

var errFetchProtocol = errors.New("replica: fetch: not what was asked for")

type request struct {
	group    uint32
	key      ShardKey
	from     uint64
	maxBytes uint32
}

func (q *request) append(b []byte) ([]byte, error) {
	inc, err := q.key.incarnation()
	if err != nil {
		return nil, err
	}
	b = binary.BigEndian.AppendUint32(append(b, fetchVersion), q.group)
	b = binary.BigEndian.AppendUint32(append(b, inc[:]...), q.key.Shard)
	b = binary.BigEndian.AppendUint64(b, q.from)
	return binary.BigEndian.AppendUint32(b, q.maxBytes), nil
}

func readRequest(in io.Reader) (request, error) {
	var b [requestLen]byte
	if _, err := io.ReadFull(in, b[:]); err != nil {
		return request{}, err
	}
	if b[0] != fetchVersion {
		return request{}, fmt.Errorf("%w: version %d", errFetchProtocol, b[0])
	}
	r := reader{b: b[1:]}
	q := request{group: r.u32()}
	q.key, q.from, q.maxBytes = r.key(), r.u64(), min(r.u32(), maxFetchBytes)
	return q, nil
}

// page is one response.
type page struct {
	status       byte
	oldest, next uint64
	records      []seglog.Record
}

func (p *page) append(b []byte) []byte {
	b = append(b, p.status)
	b = binary.BigEndian.AppendUint64(b, p.oldest)
	b = binary.BigEndian.AppendUint64(b, p.next)
	b = binary.BigEndian.AppendUint32(b, uint32(len(p.records)))
	at := len(b)
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0)
	body := len(b)
	for i := range p.records {
		b = appendFetched(b, &p.records[i])
	}
	binary.BigEndian.PutUint32(b[at:], uint32(len(b)-body))
	binary.BigEndian.PutUint32(b[at+4:], crc32.Checksum(b[body:], castagnoli))
	return b
}

func appendFetched(b []byte, r *seglog.Record) []byte {
	flags := byte(0)
	if r.HasProducer {
		flags = flagProducer
	}
	b = append(b, byte(r.Kind), flags)
	b = binary.BigEndian.AppendUint32(b, r.Count)
	b = binary.BigEndian.AppendUint64(b, r.Base)
	b = binary.BigEndian.AppendUint64(b, uint64(r.TimeMicros))
	b = binary.BigEndian.AppendUint32(b, uint32(len(r.Frame)))
	if r.HasProducer {
		b = binary.BigEndian.AppendUint64(b, r.Producer)
		b = binary.BigEndian.AppendUint64(b, r.Sequence)
	}
	return append(b, r.Frame...)
}

// readPage reads a response; the records lie in buf, or in what is returned in its place.
func readPage(in io.Reader, buf []byte) (page, []byte, error) {
	var head [responseLen]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return page{}, buf, err
	}
	r := reader{b: head[:]}
	p := page{status: r.u8(), oldest: r.u64(), next: r.u64()}
	n, size, sum := r.u32(), r.u32(), r.u32()
	if size > maxFetchPage || uint64(n)*recordHeader > uint64(size) {
		return page{}, buf, fmt.Errorf("%w: %d records in %d bytes", errFetchProtocol, n, size)
	}
	if cap(buf) < int(size) {
		buf = make([]byte, size)
	}
	buf = buf[:size]
	if _, err := io.ReadFull(in, buf); err != nil {
		return page{}, buf, err
	}
	if crc32.Checksum(buf, castagnoli) != sum {
		return page{}, buf, fmt.Errorf("%w: checksum does not match", errFetchProtocol)
	}
	r = reader{b: buf}
	for range n {
		f := seglog.Record{Kind: seglog.Kind(r.u8())}
		flags := r.u8()
		f.Count, f.Base, f.TimeMicros = r.u32(), r.u64(), int64(r.u64())
		length := r.u32()
		if flags&flagProducer != 0 {
			f.HasProducer, f.Producer, f.Sequence = true, r.u64(), r.u64()
		}
		if uint64(length) > uint64(len(r.b)) {
			r.short = true
			break
		}
		f.Frame = r.bytes(int(length))
		p.records = append(p.records, f)
	}
	if err := r.end("a page"); err != nil {
		return page{}, buf, fmt.Errorf("%w: %w", errFetchProtocol, err)
	}
	return p, buf, nil
}
