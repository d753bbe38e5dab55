package bench

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"felix.dev/felix/broker/vfs"
)

// A probe writes blocks over zeros, as a write-ahead log does, and syncs after each.
const (
	probeBlock = 4 << 10
	probeTimes = 200
)

// probeSync measures the median time that this disk takes, now, to write a block and to sync it. Nothing that is kept
// by more than one disk can be acknowledged sooner.
func probeSync(dir string) (_ time.Duration, err error) {
	name := filepath.Join(dir, "sync-probe")
	f, err := vfs.OS.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, fmt.Errorf("probe of the disk: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close(), vfs.OS.Remove(name)) }()
	if _, err := f.WriteAt(make([]byte, probeBlock*probeTimes), 0); err != nil {
		return 0, fmt.Errorf("probe of the disk: %w", err)
	}
	if err := f.Datasync(); err != nil {
		return 0, fmt.Errorf("probe of the disk: %w", err)
	}
	block := bytes.Repeat([]byte{1}, probeBlock)
	took := make([]time.Duration, probeTimes)
	for i := range took {
		start := time.Now()
		if _, err := f.WriteAt(block, int64(i)*probeBlock); err != nil {
			return 0, fmt.Errorf("probe of the disk: %w", err)
		}
		if err := f.Datasync(); err != nil {
			return 0, fmt.Errorf("probe of the disk: %w", err)
		}
		took[i] = time.Since(start)
	}
	slices.Sort(took)
	return took[probeTimes/2], nil
}
