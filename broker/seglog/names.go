package seglog

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
	segmentSuffix = ".log"
	indexSuffix   = ".idx"
	stateSuffix   = ".state"
	markName      = "durable.mark"
	newSegment    = "segment" + vfs.TempSuffix     // being created by a roll
	preparedName  = "prepared-%d" + vfs.TempSuffix // filled with zeros, for the next roll
	baseDigits    = 20
)

func segmentName(base uint64) string { return fmt.Sprintf("%0*d%s", baseDigits, base, segmentSuffix) }

func (l *Log) path(base uint64, suffix string) string { return pathIn(l.cfg.Dir, base, suffix) }

func pathIn(dir string, base uint64, suffix string) string {
	return filepath.Join(dir, fmt.Sprintf("%0*d%s", baseDigits, base, suffix))
}

// listing is what is in a log's directory, by kind, each in rising order.
type listing struct {
	segments []uint64
	indexes  []uint64
	states   []uint64
	temps    []string // unfinished files: they hold nothing that was acknowledged
	mark     bool
	other    []string
}

// list reads a log's directory. One that doesn't exist is an empty one.
func list(fsys vfs.FS, dir string) (listing, error) {
	var ls listing
	entries, err := fsys.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return ls, nil
	}
	if err != nil {
		return ls, fmt.Errorf("seglog: list %s: %w", dir, err)
	}
	for _, e := range entries {
		name := e.Name()
		base, suffix, ok := parseName(name)
		switch {
		case e.IsDir():
			ls.other = append(ls.other, name)
		case ok && suffix == segmentSuffix:
			ls.segments = append(ls.segments, base)
		case ok && suffix == indexSuffix:
			ls.indexes = append(ls.indexes, base)
		case ok && suffix == stateSuffix:
			ls.states = append(ls.states, base)
		case name == markName:
			ls.mark = true
		case strings.HasSuffix(name, vfs.TempSuffix):
			ls.temps = append(ls.temps, name)
		default:
			ls.other = append(ls.other, name)
		}
	}
	for _, s := range [][]uint64{ls.segments, ls.indexes, ls.states} {
		slices.SortFunc(s, cmp.Compare[uint64])
	}
	return ls, nil
}

func parseName(name string) (base uint64, suffix string, ok bool) {
	if len(name) <= baseDigits {
		return 0, "", false
	}
	base, err := strconv.ParseUint(name[:baseDigits], 10, 64)
	if err != nil {
		return 0, "", false
	}
	suffix = name[baseDigits:]
	return base, suffix, suffix == segmentSuffix || suffix == indexSuffix || suffix == stateSuffix
}
