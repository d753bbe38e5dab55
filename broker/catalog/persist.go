package catalog

import (
	"errors"
	"path/filepath"

	"felix.dev/felix/broker/vfs"
)

// commit makes the next state durable and then visible. When the disk refuses,
// readers keep the old state. The caller holds c.mu.
func (c *Catalog) commit(old, next *state) error {
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

func (c *Catalog) restore(old *state) error {
	data, err := encode(old)
	if err != nil {
		return err
	}
	return vfs.WriteFileAtomic(c.cfg.FS, c.cfg.Path, data, 0o600)
}
