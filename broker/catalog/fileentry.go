package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"felix.dev/felix/broker/wire"
)

// fileName and fileSettings are a stream's settings as they are written, in files,
// in commands and wherever else a StreamSpec is JSON.
type fileName struct {
	Tenant    string `json:"tenant"`
	Namespace string `json:"namespace"`
	Stream    string `json:"stream"`
}

type fileSettings struct {
	Shards     uint32       `json:"shards"`
	Durability Durability   `json:"durability"`
	Routing    wire.Routing `json:"routing"`
	MaxBytes   int64        `json:"retention_max_bytes,omitempty"`
	MaxAgeNS   int64        `json:"retention_max_age_ns,omitempty"`
	Entries    int          `json:"queue_entries,omitempty"`
	Bytes      int64        `json:"queue_bytes,omitempty"`
	OnFull     OnFull       `json:"on_full,omitempty"`
	TailBytes  int64        `json:"tail_bytes,omitempty"`
	Fsync      FsyncMode    `json:"fsync,omitempty"`
	FsyncNS    int64        `json:"fsync_every_ns,omitempty"`
}

type fileSpec struct {
	fileName
	fileSettings
}

type fileStream struct {
	fileName

	Incarnation string    `json:"incarnation"`
	Created     time.Time `json:"created"`
	RequestID   string    `json:"request_id,omitempty"`

	fileSettings

	Floors   []uint64 `json:"floors,omitempty"`
	Floor    uint64   `json:"floor,omitempty"`
	Reserved []uint64 `json:"reserved,omitempty"`

	Places   []ShardPlace `json:"places,omitempty"` // version 2, like what follows
	Deleting bool         `json:"deleting,omitempty"`
	Ends     []ShardEnd   `json:"ends,omitempty"`
}

type fileGrave struct {
	fileName

	Floors []uint64 `json:"floors"`
	Floor  uint64   `json:"floor,omitempty"`
}

func (f fileName) name() Name { return Name(f) }

func specToFile(s StreamSpec) fileSpec {
	return fileSpec{fileName(s.Name), fileSettings{
		Shards: s.Shards, Durability: s.Durability, Routing: s.Routing,
		MaxBytes: s.Retention.MaxBytes, MaxAgeNS: int64(s.Retention.MaxAge),
		Entries: s.Queue.Entries, Bytes: s.Queue.Bytes, OnFull: s.Queue.OnFull,
		TailBytes: s.TailBytes, Fsync: s.Fsync.Mode, FsyncNS: int64(s.Fsync.Every),
	}}
}

func specFromFile(n fileName, f *fileSettings) StreamSpec {
	return StreamSpec{
		Name: n.name(), Shards: f.Shards, Durability: f.Durability, Routing: f.Routing,
		Retention: Retention{MaxBytes: f.MaxBytes, MaxAge: time.Duration(f.MaxAgeNS)},
		Queue:     Queue{Entries: f.Entries, Bytes: f.Bytes, OnFull: f.OnFull},
		TailBytes: f.TailBytes, Fsync: Fsync{Mode: f.Fsync, Every: time.Duration(f.FsyncNS)},
	}
}

func toFile(e *Entry) fileStream {
	spec := specToFile(e.Spec)
	return fileStream{
		fileName: spec.fileName, fileSettings: spec.fileSettings,
		Incarnation: e.Incarnation, Created: e.CreatedAt, RequestID: e.RequestID,
		Floors: e.floors, Floor: e.floor, Reserved: e.Reserved,
		Places: e.Places, Deleting: e.Deleting, Ends: e.Ends,
	}
}

func fromFile(f fileStream) (*Entry, error) {
	spec := specFromFile(f.fileName, &f.fileSettings)
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
	for i, end := range f.Ends {
		if end.Shard >= f.Shards || i > 0 && end.Shard <= f.Ends[i-1].Shard {
			return nil, fmt.Errorf("stream %s: end of shard %d", spec.Name, end.Shard)
		}
	}
	e := &Entry{
		Spec: spec, Incarnation: f.Incarnation, CreatedAt: f.Created, RequestID: f.RequestID,
		Reserved: f.Reserved, Places: f.Places, Deleting: f.Deleting, Ends: f.Ends, floors: f.Floors, floor: f.Floor,
	}
	return e.withShards(f.Shards), nil
}

func graveToFile(g *grave) fileGrave {
	return fileGrave{fileName: fileName(g.name), Floors: g.floors, Floor: g.floor}
}

func graveFromFile(f fileGrave) grave { return grave{name: f.name(), floors: f.Floors, floor: f.Floor} }

// strictly reads JSON that this release has to understand completely.
func strictly(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if d.More() {
		return errors.New("something follows the value")
	}
	return nil
}

// MarshalJSON writes the settings in the names of the catalog's file.
func (s StreamSpec) MarshalJSON() ([]byte, error) { return json.Marshal(specToFile(s)) }

// UnmarshalJSON reads what MarshalJSON wrote. Settings that this release does not
// know are an error: ignoring them would do something else than was asked for.
func (s *StreamSpec) UnmarshalJSON(data []byte) error {
	var f fileSpec
	if err := strictly(data, &f); err != nil {
		return err
	}
	*s = specFromFile(f.fileName, &f.fileSettings)
	return nil
}

// MarshalJSON writes the entry as it is in the catalog's file.
func (e Entry) MarshalJSON() ([]byte, error) { return json.Marshal(toFile(&e)) }

// UnmarshalJSON reads and checks what MarshalJSON wrote.
func (e *Entry) UnmarshalJSON(data []byte) error {
	var f fileStream
	if err := strictly(data, &f); err != nil {
		return err
	}
	read, err := fromFile(f)
	if err != nil {
		return err
	}
	*e = *read
	return nil
}

// MarshalJSON writes the grave as it is in the catalog's file.
func (g grave) MarshalJSON() ([]byte, error) { return json.Marshal(graveToFile(&g)) }

// UnmarshalJSON reads what MarshalJSON wrote.
func (g *grave) UnmarshalJSON(data []byte) error {
	var f fileGrave
	if err := strictly(data, &f); err != nil {
		return err
	}
	*g = graveFromFile(f)
	return nil
}
