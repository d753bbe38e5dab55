package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"slices"

	"felix.dev/felix/broker/vfs"
)

// The file's format, docs/format/catalog.md: an envelope with a checksum over
// the exact bytes of the body. The types here are the format, apart from those
// of the package, so that neither can change the other by accident.

const (
	formatName    = "felix-catalog"
	formatVersion = 2
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

type fileEnvelope struct {
	Format  string          `json:"format"`
	Version int             `json:"version"`
	CRC32C  string          `json:"crc32c"` // 8 hexadecimal digits
	Body    json.RawMessage `json:"body"`
}

type fileBody struct {
	Floor   uint64       `json:"floor"`
	Streams []fileStream `json:"streams"`           // ordered by name
	Graves  []fileGrave  `json:"graves"`            // oldest first
	Cluster *fileCluster `json:"cluster,omitempty"` // version 2 only
}

// encode gives the same bytes for the same state. What a single broker has is
// version 1, which older releases read; a cluster is version 2.
func encode(s *State) ([]byte, error) {
	body := fileBody{Floor: s.floor, Streams: make([]fileStream, 0, len(s.entries)), Graves: make([]fileGrave, 0, len(s.graves))}
	for _, e := range s.entries {
		body.Streams = append(body.Streams, toFile(e))
	}
	slices.SortFunc(body.Streams, func(a, b fileStream) int { return compareNames(a.name(), b.name()) })
	for i := range s.graves {
		body.Graves = append(body.Graves, graveToFile(&s.graves[i]))
	}
	version := 1
	if body.Cluster = clusterToFile(s); body.Cluster != nil {
		version = 2
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(fileEnvelope{Format: formatName, Version: version, CRC32C: checksum(raw), Body: raw})
	if err != nil {
		return nil, err
	}
	return append(data, '\n'), nil
}

func checksum(b []byte) string { return fmt.Sprintf("%08x", crc32.Checksum(b, castagnoli)) }

// readFile reads a catalog's file. A file that is not there is fs.ErrNotExist;
// one that cannot be read as a catalog is a *CorruptError or a *VersionError.
func readFile(fsys vfs.FS, path string) (*State, error) {
	data, err := vfs.ReadFile(fsys, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("catalog: read: %w", err)
	}
	return decode(path, data)
}

func decode(path string, data []byte) (*State, error) {
	corrupt := func(reason string, err error) error { return &CorruptError{Path: path, Reason: reason, Err: err} }
	if len(data) == 0 {
		return nil, corrupt("it is empty", nil)
	}
	var env fileEnvelope
	if err := json.Unmarshal(data, &env); err != nil {
		return nil, corrupt("it is not the JSON that was written", err)
	}
	switch {
	case env.Format != formatName:
		return nil, corrupt(fmt.Sprintf("format is %q, want %q", env.Format, formatName), nil)
	case env.Version > formatVersion:
		return nil, &VersionError{Path: path, Version: env.Version, Understood: formatVersion}
	case env.Version < 1:
		return nil, corrupt(fmt.Sprintf("version is %d", env.Version), nil)
	case env.CRC32C != checksum(env.Body):
		return nil, corrupt(fmt.Sprintf("checksum is %q, the content has %q", env.CRC32C, checksum(env.Body)), nil)
	}
	var body fileBody
	if err := json.Unmarshal(env.Body, &body); err != nil {
		return nil, corrupt("content", err)
	}
	st := New()
	st.floor = body.Floor
	for _, f := range body.Streams {
		e, err := fromFile(f)
		if err != nil {
			return nil, corrupt("content", err)
		}
		key := e.Spec.Name.String()
		if st.entries[key] != nil {
			return nil, corrupt("stream "+key+" is there twice", nil)
		}
		st.entries[key] = e
	}
	for _, g := range body.Graves {
		st.graves = append(st.graves, graveFromFile(g))
	}
	if (env.Version > 1) != (body.Cluster != nil) {
		return nil, corrupt(fmt.Sprintf("version is %d, with a cluster: %v", env.Version, body.Cluster != nil), nil)
	}
	if err := clusterFromFile(body.Cluster, st); err != nil {
		return nil, corrupt("content", err)
	}
	return st, nil
}

// Encode gives the same bytes for the same state, in the format of the file.
func (s *State) Encode() ([]byte, error) {
	data, err := encode(s)
	if err != nil {
		return nil, fmt.Errorf("catalog: encode: %w", err)
	}
	return data, nil
}

// DecodeState reads what Encode gave; from says in errors where it is from. Damage
// is a *CorruptError, what a later release wrote a *VersionError.
func DecodeState(from string, data []byte) (*State, error) { return decode(from, data) }
