package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"slices"
	"time"

	"felix.dev/felix/broker/vfs"
	"felix.dev/felix/broker/wire"
)

// The file's format, docs/format/catalog.md: an envelope with a checksum over
// the exact bytes of the body. The types here are the format, apart from those
// of the package, so that neither can change the other by accident.

const (
	formatName    = "felix-catalog"
	formatVersion = 1
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
	Streams []fileStream `json:"streams"` // ordered by name
	Graves  []fileGrave  `json:"graves"`  // oldest first
}

type fileStream struct {
	Tenant      string       `json:"tenant"`
	Namespace   string       `json:"namespace"`
	Stream      string       `json:"stream"`
	Incarnation string       `json:"incarnation"`
	Created     time.Time    `json:"created"`
	RequestID   string       `json:"request_id,omitempty"`
	Shards      uint32       `json:"shards"`
	Durability  Durability   `json:"durability"`
	Routing     wire.Routing `json:"routing"`
	MaxBytes    int64        `json:"retention_max_bytes,omitempty"`
	MaxAgeNS    int64        `json:"retention_max_age_ns,omitempty"`
	Entries     int          `json:"queue_entries,omitempty"`
	Bytes       int64        `json:"queue_bytes,omitempty"`
	OnFull      OnFull       `json:"on_full,omitempty"`
	TailBytes   int64        `json:"tail_bytes,omitempty"`
	Fsync       FsyncMode    `json:"fsync,omitempty"`
	FsyncNS     int64        `json:"fsync_every_ns,omitempty"`
	Floors      []uint64     `json:"floors,omitempty"`
	Floor       uint64       `json:"floor,omitempty"`
	Reserved    []uint64     `json:"reserved,omitempty"`
}

type fileGrave struct {
	Tenant    string   `json:"tenant"`
	Namespace string   `json:"namespace"`
	Stream    string   `json:"stream"`
	Floors    []uint64 `json:"floors"`
	Floor     uint64   `json:"floor,omitempty"`
}

// encode gives the same bytes for the same state.
func encode(s *state) ([]byte, error) {
	body := fileBody{Floor: s.floor, Streams: make([]fileStream, 0, len(s.entries)), Graves: make([]fileGrave, 0, len(s.graves))}
	for _, e := range s.entries {
		body.Streams = append(body.Streams, toFile(e))
	}
	slices.SortFunc(body.Streams, func(a, b fileStream) int { return compareNames(a.name(), b.name()) })
	for _, g := range s.graves {
		body.Graves = append(body.Graves, fileGrave{
			Tenant: g.name.Tenant, Namespace: g.name.Namespace, Stream: g.name.Stream, Floors: g.floors, Floor: g.floor,
		})
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(fileEnvelope{
		Format: formatName, Version: formatVersion, CRC32C: checksum(raw), Body: raw,
	})
	if err != nil {
		return nil, err
	}
	return append(data, '\n'), nil
}

func checksum(b []byte) string { return fmt.Sprintf("%08x", crc32.Checksum(b, castagnoli)) }

func (f fileStream) name() Name {
	return Name{Tenant: f.Tenant, Namespace: f.Namespace, Stream: f.Stream}
}

func toFile(e *Entry) fileStream {
	s := e.Spec
	return fileStream{
		Tenant: s.Name.Tenant, Namespace: s.Name.Namespace, Stream: s.Name.Stream,
		Incarnation: e.Incarnation, Created: e.CreatedAt, RequestID: e.RequestID,
		Shards: s.Shards, Durability: s.Durability, Routing: s.Routing,
		MaxBytes: s.Retention.MaxBytes, MaxAgeNS: int64(s.Retention.MaxAge),
		Entries: s.Queue.Entries, Bytes: s.Queue.Bytes, OnFull: s.Queue.OnFull,
		TailBytes: s.TailBytes, Fsync: s.Fsync.Mode, FsyncNS: int64(s.Fsync.Every),
		Floors: e.floors, Floor: e.floor, Reserved: e.Reserved,
	}
}

func fromFile(f fileStream) (*Entry, error) {
	spec := StreamSpec{
		Name: f.name(), Shards: f.Shards, Durability: f.Durability, Routing: f.Routing,
		Retention: Retention{MaxBytes: f.MaxBytes, MaxAge: time.Duration(f.MaxAgeNS)},
		Queue:     Queue{Entries: f.Entries, Bytes: f.Bytes, OnFull: f.OnFull},
		TailBytes: f.TailBytes, Fsync: Fsync{Mode: f.Fsync, Every: time.Duration(f.FsyncNS)},
	}
	switch {
	case spec != spec.Normalized():
		return nil, fmt.Errorf("stream %s: settings are left out", spec.Name)
	case len(f.Incarnation) != 32:
		return nil, fmt.Errorf("stream %s: incarnation %q", spec.Name, f.Incarnation)
	case spec.Durability == Memory && len(f.Reserved) != int(f.Shards), spec.Durability != Memory && f.Reserved != nil:
		return nil, fmt.Errorf("stream %s: %d reserved marks", spec.Name, len(f.Reserved))
	}
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	e := &Entry{
		Spec: spec, Incarnation: f.Incarnation, CreatedAt: f.Created, RequestID: f.RequestID,
		Reserved: f.Reserved, floors: f.Floors, floor: f.Floor,
	}
	return e.withShards(f.Shards), nil
}

// readFile reads a catalog's file. A file that is not there is fs.ErrNotExist;
// one that cannot be read as a catalog is a *CorruptError or a *VersionError.
func readFile(fsys vfs.FS, path string) (*state, error) {
	data, err := vfs.ReadFile(fsys, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("catalog: read: %w", err)
	}
	return decode(path, data)
}

func decode(path string, data []byte) (*state, error) {
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
	st := newState()
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
		st.graves = append(st.graves, grave{
			name: Name{Tenant: g.Tenant, Namespace: g.Namespace, Stream: g.Stream}, floors: g.Floors, floor: g.Floor,
		})
	}
	return st, nil
}
