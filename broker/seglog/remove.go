package seglog

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"felix.dev/felix/broker/vfs"
)

// Remove deletes a log that isn't open, for good: its files, then its directory.
// Files that are not the log's are left alone, and the directory with them. If it is
// interrupted it can be called again; one that is not there is removed already.
func Remove(fsys vfs.FS, dir string) error {
	ls, err := list(fsys, dir)
	if err != nil {
		return err
	}
	// What vouches for segments goes before them: a log that is half removed must not
	// look damaged for want of what was removed on purpose.
	var first []string
	if ls.mark {
		first = append(first, markName)
	}
	for _, base := range ls.indexes {
		first = append(first, filepath.Base(pathIn(dir, base, indexSuffix)))
	}
	for _, base := range ls.states {
		first = append(first, filepath.Base(pathIn(dir, base, stateSuffix)))
	}
	first = append(first, ls.temps...)
	steps := [][]string{first}
	// Latest first, each for good before the next: what an interruption leaves must not end
	// where the whole log did, for it may be opened again, to be filled from elsewhere.
	for _, base := range slices.Backward(ls.segments) {
		steps = append(steps, []string{segmentName(base)})
	}
	for _, names := range steps {
		for _, name := range names {
			if err := fsys.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("seglog: remove %s: %w", dir, err)
			}
		}
		if len(names) > 0 {
			if err := fsys.SyncDir(dir); err != nil {
				return fmt.Errorf("seglog: remove %s: %w", dir, err)
			}
		}
	}
	if len(ls.other) > 0 {
		return fmt.Errorf("seglog: remove %s: the directory stays, %d files in it are not the log's (%s)", dir, len(ls.other), ls.other[0])
	}
	if err := fsys.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("seglog: remove %s: %w", dir, err)
	}
	// Also if it was gone: an earlier attempt may not have got this far.
	if err := fsys.SyncDir(filepath.Dir(dir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("seglog: remove %s: %w", dir, err)
	}
	return nil
}
