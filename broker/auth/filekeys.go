package auth

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"felix.dev/felix/broker/vfs"
)

// FileKeysConfig configures FileKeys.
type FileKeysConfig struct {
	// Paths is tenant to JWKS file. At least one.
	Paths map[string]string
	// FS is where the files are. Nil: vfs.OS.
	FS vfs.FS
	// Every is how often, at most, a file is looked at. 0: 1 s.
	Every time.Duration
	// Now is the clock. Nil: time.Now.
	Now func() time.Time
	// OnProblem is told when a file becomes unreadable (once for each different
	// message) and, with a nil error, when it is good again. It runs on the
	// goroutine of a Verify and must not block. Nil: nobody is told.
	OnProblem func(tenant string, err error)
}

// Validate reports every problem of the configuration at once.
func (c FileKeysConfig) Validate() error {
	var errs []error
	if len(c.Paths) == 0 {
		errs = append(errs, errors.New("auth: no key files"))
	}
	for _, tenant := range slices.Sorted(maps.Keys(c.Paths)) {
		if tenant == "" || c.Paths[tenant] == "" {
			errs = append(errs, fmt.Errorf("auth: key file %q for tenant %q: both are required", c.Paths[tenant], tenant))
		}
	}
	if c.Every < 0 {
		errs = append(errs, errors.New("auth: key files cannot be looked at at a negative interval"))
	}
	return errors.Join(errs...)
}

// ParseKeyFlag reads "tenant=path", the form of key files on a command line.
func ParseKeyFlag(s string) (tenant, path string, err error) {
	tenant, path, ok := strings.Cut(s, "=")
	if !ok || tenant == "" || path == "" {
		return "", "", fmt.Errorf("key file %q: want tenant=path", s)
	}
	return tenant, path, nil
}

// FileKeys is a KeySource that reads one JWKS file for each tenant and follows
// changes. A file that has become unreadable, or holds no usable key, leaves the
// keys that were read from it before in force.
type FileKeys struct {
	cfg   FileKeysConfig
	files map[string]*keyFile
}

// keyFile is the state of one tenant's file.
type keyFile struct {
	tenant, path string

	set     atomic.Pointer[KeySet] // never nil once NewFileKeys has returned
	checked atomic.Int64           // when the file was last looked at, unix ns
	problem atomic.Pointer[error]  // nil: the file is good

	mu      sync.Mutex // held while looking at the file
	mtime   time.Time  // guarded by mu; as it was when content was read
	size    int64      // guarded by mu
	settled bool       // guarded by mu; mtime was old enough to tell a change
	content []byte     // guarded by mu; what set was made of
}

// NewFileKeys reads all files. Here, unlike later, a file that cannot be used
// is an error: there are no older keys to go on with.
func NewFileKeys(cfg FileKeysConfig) (*FileKeys, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.FS == nil {
		cfg.FS = vfs.OS
	}
	if cfg.Every == 0 {
		cfg.Every = time.Second
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	f := &FileKeys{cfg: cfg, files: make(map[string]*keyFile, len(cfg.Paths))}
	var errs []error
	for _, tenant := range slices.Sorted(maps.Keys(cfg.Paths)) {
		k := &keyFile{tenant: tenant, path: cfg.Paths[tenant]}
		if err := f.look(k, cfg.Now()); err != nil {
			errs = append(errs, err)
		}
		f.files[tenant] = k
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return f, nil
}

// KeySet returns the tenant's current keys. At most once in Every it looks at
// the file first; whoever comes in the meantime gets the keys that are there.
func (f *FileKeys) KeySet(tenant string) (*KeySet, error) {
	k := f.files[tenant]
	if k == nil {
		return nil, ErrUnknownTenant
	}
	now := f.cfg.Now()
	if now.UnixNano()-k.checked.Load() >= int64(f.cfg.Every) && k.mu.TryLock() {
		f.refresh(k, now)
		k.mu.Unlock()
	}
	return k.set.Load(), nil
}

// Problems returns the tenants whose files cannot be used at the moment, though
// their older keys still are.
func (f *FileKeys) Problems() map[string]error {
	out := make(map[string]error)
	for tenant, k := range f.files {
		if p := k.problem.Load(); p != nil {
			out[tenant] = *p
		}
	}
	return out
}

// refresh looks at the file and reports what changed. The caller holds k.mu.
func (f *FileKeys) refresh(k *keyFile, now time.Time) {
	err := f.look(k, now)
	before := k.problem.Load()
	switch {
	case err == nil && before == nil:
		return
	case err == nil:
		k.problem.Store(nil)
	case before != nil && (*before).Error() == err.Error():
		return
	default:
		k.problem.Store(&err)
	}
	if f.cfg.OnProblem != nil {
		f.cfg.OnProblem(k.tenant, err)
	}
}

// racy is how young a file's time may be for it to change again without its
// time or size telling.
const racy = 2 * time.Second

// look reads the file if it may have changed. The set is replaced only if the
// content is another one, as a new set means that every token is checked again.
func (f *FileKeys) look(k *keyFile, now time.Time) error {
	k.checked.Store(now.UnixNano())
	fail := func(err error) error {
		k.settled = false // what the next look finds is to be read whatever its time
		return fmt.Errorf("auth: key file of tenant %s: %w", k.tenant, err)
	}
	info, err := f.cfg.FS.Stat(k.path)
	if err != nil {
		return fail(err)
	}
	if k.settled && info.ModTime().Equal(k.mtime) && info.Size() == k.size {
		return nil
	}
	if info.Size() > maxKeyFile {
		return fail(&fs.PathError{Op: "read", Path: k.path, Err: fmt.Errorf("larger than %d bytes", maxKeyFile)})
	}
	data, err := vfs.ReadFile(f.cfg.FS, k.path)
	if err != nil {
		return fail(err)
	}
	if k.content == nil || !bytes.Equal(data, k.content) {
		set, err := ParseJWKS(data)
		if err != nil {
			return fail(fmt.Errorf("%s: %w", k.path, err))
		}
		k.content = data
		k.set.Store(set)
	}
	k.mtime, k.size = info.ModTime(), info.Size()
	k.settled = now.Sub(info.ModTime()) > racy
	return nil
}

// maxKeyFile is far above what MaxKeys keys need.
const maxKeyFile = 1 << 20
