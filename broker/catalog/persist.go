package catalog

import (
	"errors"
	"path/filepath"

	"felix.dev/felix/broker/vfs"
)

// change applies a command and commits what comes of it. The caller holds c.mu.
func (c *Catalog) change(cmd Command) (Result, error) {
	old := c.current.Load()
	next, r := old.transit(0, cmd, c.cfg.Now(), c.cfg.limits())
	if r.Err != nil || !r.Changed {
		return r, r.Err
	}
	return r, c.commit(old, next)
}

// commit makes the next state durable and then visible. When the disk refuses,
// readers keep the old state. The caller holds c.mu.
func (c *Catalog) commit(old, next *State) error {
	if c.cfg.InMemory {
		c.current.Store(next)
		return nil
	}
	data, err := encode(next)
	if err != nil {
		return &WriteError{Path: c.cfg.Path, Err: err}
	}
	if err := vfs.WriteFileSynced(c.cfg.FS, c.cfg.Path, data, 0o600); err != nil {
		return &WriteError{Path: c.cfg.Path, Err: err} // the file is the old one
	}
	if err := c.cfg.FS.SyncDir(filepath.Dir(c.cfg.Path)); err != nil {
		// The new file has its name, but perhaps not for good. The change is
		// refused, so it must not come back after a crash either: put the old
		// state in its place.
		return &WriteError{Path: c.cfg.Path, Err: errors.Join(err, c.restore(old))}
	}
	c.current.Store(next)
	return nil
}

func (c *Catalog) restore(old *State) error {
	data, err := encode(old)
	if err != nil {
		return err
	}
	return vfs.WriteFileAtomic(c.cfg.FS, c.cfg.Path, data, 0o600)
}
