package replica

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"felix.dev/felix/broker/stream"
)

// A manifest is what a snapshot says: where every shard stands, without its records.
// docs/format/quorum.md has the bytes.
const (
	manifestMagic   = "FELIXQMF"
	manifestVersion = 1
	manifestHeader  = 8 + 2 + 2 + 4 + 4 + 4
	manifestShard   = 4 + keyLen + 1 + 4*8 + 4 + 4
	flagSealed      = 1
)

var (
	castagnoli     = crc32.MakeTable(crc32.Castagnoli)
	errBadManifest = errors.New("replica: manifest is damaged or of another version")
)

type manifest struct {
	group    uint32
	nextSlot uint32
	shards   []manifestEntry // by slot
}

type manifestEntry struct {
	slot uint32
	Opening
	state stream.ReplicaState
}

func (m *manifest) encode() ([]byte, error) {
	size := manifestHeader + 4
	for i := range m.shards {
		size += manifestShard + len(m.shards[i].Spec) + len(m.shards[i].state.Producers)
	}
	b := append(make([]byte, 0, size), manifestMagic...)
	b = binary.BigEndian.AppendUint16(b, manifestVersion)
	b = binary.BigEndian.AppendUint16(b, 0)
	b = binary.BigEndian.AppendUint32(b, m.group)
	b = binary.BigEndian.AppendUint32(b, m.nextSlot)
	b = binary.BigEndian.AppendUint32(b, uint32(len(m.shards)))
	for i := range m.shards {
		e := &m.shards[i]
		inc, err := e.Key.incarnation()
		if err != nil {
			return nil, err
		}
		b = binary.BigEndian.AppendUint32(b, e.slot)
		b = append(b, inc[:]...)
		b = binary.BigEndian.AppendUint32(b, e.Key.Shard)
		flags := byte(0)
		if e.state.Sealed {
			flags = flagSealed
		}
		b = append(b, flags)
		for _, v := range []uint64{e.state.First, e.state.Next, e.state.Oldest, e.state.Term} {
			b = binary.BigEndian.AppendUint64(b, v)
		}
		for _, block := range [][]byte{e.Spec, e.state.Producers} {
			b = binary.BigEndian.AppendUint32(b, uint32(len(block)))
			b = append(b, block...)
		}
	}
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli)), nil
}

func parseManifest(group uint32, b []byte) (*manifest, error) {
	if len(b) < manifestHeader+4 || string(b[:8]) != manifestMagic || binary.BigEndian.Uint16(b[8:]) != manifestVersion {
		return nil, errBadManifest
	}
	body, sum := b[:len(b)-4], binary.BigEndian.Uint32(b[len(b)-4:])
	if crc32.Checksum(body, castagnoli) != sum {
		return nil, fmt.Errorf("%w: checksum does not match", errBadManifest)
	}
	r := reader{b: body[12:]}
	m := &manifest{group: r.u32(), nextSlot: r.u32()}
	if m.group != group {
		return nil, fmt.Errorf("%w: it is of group %d, not %d", errBadManifest, m.group, group)
	}
	n := r.u32()
	if uint64(n)*manifestShard > uint64(len(r.b)) {
		return nil, fmt.Errorf("%w: %d shards in %d bytes", errBadManifest, n, len(r.b))
	}
	for range n {
		e := manifestEntry{slot: r.u32()}
		e.Key = r.key()
		e.state.Sealed = r.u8()&flagSealed != 0
		e.state.First, e.state.Next, e.state.Oldest, e.state.Term = r.u64(), r.u64(), r.u64(), r.u64()
		e.First = e.state.First
		e.Spec = append([]byte(nil), r.block()...)
		e.state.Producers = append([]byte(nil), r.block()...)
		m.shards = append(m.shards, e)
	}
	if err := r.end("the manifest"); err != nil {
		return nil, fmt.Errorf("%w: %w", errBadManifest, err)
	}
	return m, nil
}
