package seglog

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io/fs"
	"math"
	"slices"

	"felix.dev/felix/broker/vfs"
)

// A state file holds what the owner of the log knew when a segment began.
//
//	 0  8 bytes  "FELIXSTA"
//	 8  u16      version
//	10  u16      zero
//	12  u32      length of the state
//	16  u64      base offset of the segment
//	24  16 bytes incarnation
//	40  state
//	    u32      CRC-32C of everything before
const (
	stateMagic     = "FELIXSTA"
	stateHeaderLen = 40
)

var errBadState = errors.New("state is damaged or of another segment")

func appendState(dst []byte, base uint64, incarnation [16]byte, state []byte) []byte {
	start := len(dst)
	dst = append(dst, stateMagic...)
	dst = binary.BigEndian.AppendUint16(dst, formatVersion)
	dst = binary.BigEndian.AppendUint16(dst, 0)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(state)))
	dst = binary.BigEndian.AppendUint64(dst, base)
	dst = append(dst, incarnation[:]...)
	dst = append(dst, state...)
	return binary.BigEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

func parseState(b []byte, base uint64, incarnation [16]byte) ([]byte, error) {
	if len(b) < stateHeaderLen+4 || string(b[:8]) != stateMagic {
		return nil, errBadState
	}
	body, sum := b[:len(b)-4], binary.BigEndian.Uint32(b[len(b)-4:])
	if binary.BigEndian.Uint16(b[8:]) != formatVersion || uint64(binary.BigEndian.Uint32(b[12:])) != uint64(len(body)-stateHeaderLen) ||
		crc32.Checksum(body, castagnoli) != sum ||
		binary.BigEndian.Uint64(b[16:]) != base || [16]byte(b[24:40]) != incarnation {
		return nil, errBadState
	}
	return body[stateHeaderLen:], nil
}

func readState(fsys vfs.FS, dir string, base uint64, incarnation [16]byte) ([]byte, error) {
	b, err := vfs.ReadFile(fsys, pathIn(dir, base, stateSuffix))
	if err != nil {
		return nil, err
	}
	return parseState(b, base, incarnation)
}

// writeState stores the owner's state for the segment that is about to begin. Its
// name becomes durable together with the segment's.
func (l *Log) writeState(base uint64) error {
	if l.cfg.SnapshotState == nil {
		return nil
	}
	state := l.cfg.SnapshotState()
	if uint64(len(state)) > math.MaxUint32 {
		return errors.New("seglog: owner's state is over 4 GiB")
	}
	data := appendState(make([]byte, 0, stateHeaderLen+len(state)+4), base, l.cfg.Incarnation, state)
	return vfs.WriteFileSynced(l.fs, l.path(base, stateSuffix), data, filePerm)
}

// restoreState gives the owner the newest state that is intact, and returns the
// number of the segment from which it has to see records. A state that can't be read
// for the disk's reasons is passed over like a damaged one, unless there is no other:
// the next attempt may find it.
func (l *Log) restoreState(segs []*segment, rec *Recovery) (from int, err error) {
	if l.cfg.RestoreState == nil {
		rec.StateFrom = segs[len(segs)-1].base
		return len(segs) - 1, nil
	}
	var unreadable error
	for i, s := range slices.Backward(segs) {
		base := s.base
		b, err := readState(l.fs, l.cfg.Dir, base, l.cfg.Incarnation)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errBadState) {
			unreadable = err
		}
		if err == nil {
			err = l.cfg.RestoreState(b)
		}
		if err == nil {
			rec.StateFrom = base
			return i, nil
		}
		if i > 0 || base != l.cfg.First { // the first segment never has one
			l.log.Warn("owner's state is not usable, an older one is tried", "dir", l.cfg.Dir, "offset", base, "err", err)
		}
	}
	rec.StateFrom = segs[0].base
	rec.StateLost = segs[0].base != l.cfg.First
	if rec.StateLost && unreadable != nil {
		return 0, l.wrap("read owner's state", unreadable)
	}
	return 0, nil
}
