package quorum

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/hashicorp/raft"

	"felix.dev/felix/broker/vfs"
)

// maxManifestBytes bounds a manifest.
const maxManifestBytes = 64 << 20

// A snapshot's file: snapMagic, 4 bytes length of the head, the head as JSON, the
// manifest, and a CRC-32C of all that. See docs/format/quorum.md.
var snapMagic = []byte("FLXQSN01")

const (
	snapPrefix = "snapshot-"
	snapSuffix = ".snap"
)

// snapHead is what raft has to know of a snapshot.
type snapHead struct {
	Index         uint64       `json:"index"`
	Term          uint64       `json:"term"`
	Configuration uint64       `json:"configuration_index"`
	Servers       []snapMember `json:"servers"`
}

type snapMember struct {
	ID    string `json:"id"`
	Voter bool   `json:"voter"`
}

func headOf(m *raft.SnapshotMeta) snapHead {
	h := snapHead{Index: m.Index, Term: m.Term, Configuration: m.ConfigurationIndex}
	for _, s := range m.Configuration.Servers {
		h.Servers = append(h.Servers, snapMember{ID: string(s.ID), Voter: s.Suffrage == raft.Voter})
	}
	return h
}

func (h snapHead) meta(size int64) *raft.SnapshotMeta {
	m := &raft.SnapshotMeta{
		Version: raft.SnapshotVersionMax, ID: snapName(h.Index, h.Term), Index: h.Index, Term: h.Term,
		ConfigurationIndex: h.Configuration, Size: size,
	}
	for _, s := range h.Servers {
		suffrage := raft.Nonvoter
		if s.Voter {
			suffrage = raft.Voter
		}
		m.Configuration.Servers = append(m.Configuration.Servers,
			raft.Server{ID: raft.ServerID(s.ID), Address: raft.ServerAddress(s.ID), Suffrage: suffrage})
	}
	return m
}

func snapName(index, term uint64) string {
	return fmt.Sprintf("%s%020d-%d%s", snapPrefix, index, term, snapSuffix)
}

func encodeSnap(h snapHead, manifest []byte) ([]byte, error) {
	head, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	b := make([]byte, 0, len(snapMagic)+8+len(head)+len(manifest))
	b = append(b, snapMagic...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(head)))
	b = append(append(b, head...), manifest...)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli)), nil
}

var errSnap = errors.New("not a snapshot")

func decodeSnap(b []byte) (snapHead, []byte, error) {
	var h snapHead
	body, ok := bytes.CutPrefix(b, snapMagic)
	if !ok || len(body) < 8 {
		return h, nil, errSnap
	}
	if sum := binary.BigEndian.Uint32(b[len(b)-4:]); sum != crc32.Checksum(b[:len(b)-4], castagnoli) {
		return h, nil, fmt.Errorf("%w: checksum differs", errSnap)
	}
	n := int64(binary.BigEndian.Uint32(body))
	body = body[4 : len(body)-4]
	if n > int64(len(body)) {
		return h, nil, fmt.Errorf("%w: head of %d bytes", errSnap, n)
	}
	if err := json.Unmarshal(body[:n], &h); err != nil {
		return h, nil, fmt.Errorf("%w: head: %w", errSnap, err)
	}
	if h.Index == 0 || h.Term == 0 || len(h.Servers) == 0 {
		return h, nil, fmt.Errorf("%w: head %s", errSnap, body[:n])
	}
	return h, body[n:], nil
}

// readSnaps finds the newest snapshot of a directory and removes what a crash left
// beside it. A damaged one is an error: entries before it are gone.
func readSnaps(fsys vfs.FS, dir string) (newest *raft.SnapshotMeta, manifest []byte, path string, err error) {
	list, err := fsys.ReadDir(dir)
	if err != nil {
		return nil, nil, dir, err
	}
	var names []string // the newest last: ReadDir sorts, and indexes are padded
	for _, e := range list {
		switch name := e.Name(); {
		case strings.HasSuffix(name, vfs.TempSuffix):
			if err := fsys.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, nil, dir, err
			}
		case strings.HasPrefix(name, snapPrefix) && strings.HasSuffix(name, snapSuffix):
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil, nil, dir, nil
	}
	path = filepath.Join(dir, names[len(names)-1])
	b, err := vfs.ReadFile(fsys, path)
	if err != nil {
		return nil, nil, path, err
	}
	h, manifest, err := decodeSnap(b)
	if err != nil {
		return nil, nil, path, err
	}
	for _, old := range names[:len(names)-1] {
		_ = fsys.Remove(filepath.Join(dir, old)) // it is tried again at the next snapshot
	}
	return h.meta(int64(len(manifest))), manifest, path, nil
}
