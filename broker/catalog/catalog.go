package catalog

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"felix.dev/felix/broker/vfs"
)

// DefaultMaxStreams is how many streams a catalog holds if nothing else is said.
const DefaultMaxStreams = 10_000

const (
	defaultMaxGraves    = 10_000
	defaultReserveBlock = 1 << 24
)

// Config configures a Catalog. The zero value of each field is usable, but one of
// Path and InMemory has to be set.
type Config struct {
	// Path is the catalog's file; its directory exists.
	Path string
	// InMemory keeps no file: for a broker without storage, whose streams are all
	// gone with it. Offsets then start at the clock (in nanoseconds), so that a
	// cursor from before a restart is too old instead of misread. Excludes Path.
	InMemory bool
	// FS is where the file is. Nil: vfs.OS.
	FS vfs.FS
	// MustExist makes a missing file an error (ErrMissing) instead of an empty
	// catalog. Whoever finds streams' data on disk sets it.
	MustExist bool
	// MaxStreams bounds the streams. 0: DefaultMaxStreams.
	MaxStreams int
	// MaxGraves bounds the names of deleted streams that are remembered one by
	// one. 0: 10000.
	MaxGraves int
	// ReserveBlock is how many offsets of a memory shard one write reserves.
	// 0: 2^24.
	ReserveBlock uint64
	// Now is the clock. Nil: time.Now.
	Now func() time.Time
	// Random makes incarnations. Nil: the system's secure source.
	Random io.Reader
}

// Validate reports every problem of the configuration at once.
func (c Config) Validate() error {
	var errs []error
	if (c.Path == "") != c.InMemory {
		errs = append(errs, errors.New("catalog: want a path or to be in memory, one of them"))
	}
	if c.MaxStreams < 0 || c.MaxGraves < 0 {
		errs = append(errs, errors.New("catalog: bounds are negative"))
	}
	return errors.Join(errs...)
}

func (c Config) withDefaults() Config {
	if c.FS == nil {
		c.FS = vfs.OS
	}
	c.MaxStreams = cmp.Or(c.MaxStreams, DefaultMaxStreams)
	c.MaxGraves = cmp.Or(c.MaxGraves, defaultMaxGraves)
	c.ReserveBlock = cmp.Or(c.ReserveBlock, defaultReserveBlock)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Random == nil {
		c.Random = rand.Reader
	}
	return c
}

// limits are what the configuration bounds, in the form of a cluster's settings.
func (c Config) limits() Settings {
	return Settings{MaxStreams: c.MaxStreams, MaxGraves: c.MaxGraves, ReserveBlock: c.ReserveBlock}
}

// Catalog is the streams of a single broker, kept in a file.
type Catalog struct {
	cfg Config

	current atomic.Pointer[State] // what readers see; always durable

	mu    sync.Mutex               // one change at a time; held while the file is written
	asked map[string]*reservations // guarded by mu; by incarnation
}

// Open reads the catalog's file. It writes nothing: a catalog whose disk is full
// can be opened.
func Open(cfg Config) (*Catalog, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	c := &Catalog{cfg: cfg, asked: make(map[string]*reservations)}
	if cfg.InMemory {
		st := New()
		st.floor = uint64(max(cfg.Now().UnixNano(), 0))
		c.current.Store(st)
		return c, nil
	}
	st, err := readFile(cfg.FS, cfg.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !cfg.MustExist:
		st = New()
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("catalog: %s: %w, though streams' data is there: restore it from a copy", cfg.Path, ErrMissing)
	case err != nil:
		return nil, err
	case st.cluster != "" || st.index != 0:
		return nil, fmt.Errorf("catalog: %s: %w", cfg.Path, ErrOfCluster)
	}
	c.current.Store(st)
	return c, nil
}

// State is what there is. It never changes; ask again to see changes.
func (c *Catalog) State() *State { return c.current.Load() }

// Get finds a stream; the error is ErrNotFound.
func (c *Catalog) Get(n Name) (Entry, error) { return c.current.Load().Get(n) }

// List returns all streams, ordered by name.
func (c *Catalog) List() []Entry { return c.current.Load().List() }
