package quorum

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
)

// removedSuffix ends the name of a group's directory whose removal has begun.
const removedSuffix = ".removed"

// Remove deletes this server's state of a group, which must not be open. The group
// must have removed the server from its members before.
func (n *Node) Remove(id uint32) error {
	if err := n.claim(id); err != nil {
		return err
	}
	defer func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.groups, id)
	}()
	dir := n.groupDir(id)
	err := n.cfg.FS.Rename(dir, dir+removedSuffix)
	if err == nil {
		err = n.cfg.FS.SyncDir(n.cfg.Dir)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("quorum: remove group %d: %w", id, err)
	}
	return n.finishRemoval(id)
}

// finishRemovals finishes what a crash interrupted.
func (n *Node) finishRemovals() error {
	list, err := n.cfg.FS.ReadDir(n.cfg.Dir)
	if err != nil {
		return fmt.Errorf("quorum: %w", err)
	}
	for _, e := range list {
		text, removed := strings.CutSuffix(strings.TrimPrefix(e.Name(), "g"), removedSuffix)
		id, err := strconv.ParseUint(text, 10, 32)
		if !removed || err != nil {
			continue
		}
		if err := n.finishRemoval(uint32(id)); err != nil {
			return err
		}
	}
	return nil
}

// finishRemoval removes the entries, then the directory that says that they must go.
func (n *Node) finishRemoval(id uint32) error {
	store, err := n.entriesOf(logKey(id))
	if err == nil {
		err = store.Forget()
	}
	if err != nil {
		return fmt.Errorf("quorum: remove group %d: log: %w", id, err)
	}
	dir := n.groupDir(id) + removedSuffix
	list, err := n.cfg.FS.ReadDir(dir)
	for _, e := range list {
		err = errors.Join(err, n.cfg.FS.Remove(filepath.Join(dir, e.Name())))
	}
	if err == nil {
		err = n.cfg.FS.Remove(dir)
	}
	if err == nil {
		err = n.cfg.FS.SyncDir(n.cfg.Dir)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("quorum: remove group %d: %w", id, err)
	}
	return nil
}
