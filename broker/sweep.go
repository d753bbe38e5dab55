package broker

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"

	"felix.dev/felix/broker/catalog"
	"felix.dev/felix/broker/seglog"
	"felix.dev/felix/broker/vfs"
)

// sweep looks at the data of streams before they are opened: it finishes removals
// that were interrupted, and reports what the catalog does not know. That is never
// removed: the catalog may be the one that is wrong.
func sweep(logs vfs.FS, dataDir string, entries []catalog.Entry, log *slog.Logger) error {
	known := make(map[string]bool, len(entries))
	for i := range entries {
		known[incarnationDir(dataDir, &entries[i])] = true
	}
	dirs, err := foldersOf(dataDir, "*")
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		_, err := os.Stat(filepath.Join(dir, deletedName))
		marked := err == nil
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("broker: data directory: %w", err)
		}
		switch {
		case known[dir] && marked: // the deletion did not come to the catalog
			if err := os.Remove(filepath.Join(dir, deletedName)); err != nil {
				return fmt.Errorf("broker: data directory: %w", err)
			}
		case known[dir]:
		case marked:
			if err := removeIncarnation(logs, dir); err != nil {
				log.Warn("data of a deleted stream stays", slog.String("dir", dir), slog.Any("error", err))
			}
		default:
			log.Warn("data that no stream of the catalog owns is left alone", slog.String("dir", dir))
		}
	}
	return nil
}

// removeIncarnation removes the logs of a deleted stream, the mark last.
func removeIncarnation(logs vfs.FS, dir string) error {
	entries, err := logs.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // it may not have had a log
		return fmt.Errorf("broker: remove data: %w", err)
	}
	for _, e := range entries {
		if _, err := strconv.ParseUint(e.Name(), 10, 32); err != nil || !e.IsDir() {
			continue
		}
		if err := seglog.Remove(logs, filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	if err := os.Remove(filepath.Join(dir, deletedName)); err != nil {
		return fmt.Errorf("broker: remove data: %w", err)
	}
	if err := os.Remove(dir); err != nil { // something that is not ours is in it
		return fmt.Errorf("broker: remove data: %w", err)
	}
	return nil
}
