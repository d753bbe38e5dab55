package wal

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"felix.dev/felix/broker/vfs"
)

const (
	filePerm = 0o640
	dirPerm  = 0o750

	fileSuffix   = ".wal"
	numberDigits = 20
	newName      = "new" + vfs.TempSuffix      // being made by a roll
	spareName    = "spare-%d" + vfs.TempSuffix // dropped, for a roll to take
)

func fileName(number uint64) string { return fmt.Sprintf("%0*d%s", numberDigits, number, fileSuffix) }

func (l *Log) path(number uint64) string { return filepath.Join(l.cfg.Dir, fileName(number)) }

// listing is what is in a log's directory.
type listing struct {
	files []uint64 // numbers, rising
	temps []string // hold nothing that is needed
}

// list reads a log's directory. One that doesn't exist is an empty one.
func list(fsys vfs.FS, dir string) (listing, error) {
	var ls listing
	entries, err := fsys.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return ls, nil
	}
	if err != nil {
		return ls, fmt.Errorf("wal: list %s: %w", dir, err)
	}
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() {
			continue
		}
		if number, ok := parseName(name); ok {
			ls.files = append(ls.files, number)
		} else if strings.HasSuffix(name, vfs.TempSuffix) {
			ls.temps = append(ls.temps, name)
		}
	}
	slices.SortFunc(ls.files, cmp.Compare[uint64])
	return ls, nil
}

func parseName(name string) (number uint64, ok bool) {
	if len(name) != numberDigits+len(fileSuffix) || !strings.HasSuffix(name, fileSuffix) {
		return 0, false
	}
	number, err := strconv.ParseUint(name[:numberDigits], 10, 64)
	return number, err == nil && number > 0
}
