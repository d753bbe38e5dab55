package quorum

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"felix.dev/felix/broker/vfs"
)

// FileState is for NodeConfig.State: values in a file that is replaced as a whole, on a
// file system that bolt knows nothing of. It is for tests with simulated disks.
func FileState(fsys vfs.FS) func(path string) (StateStore, error) {
	return func(path string) (StateStore, error) {
		s := &fileState{fs: fsys, path: path, values: map[string][]byte{}}
		b, err := vfs.ReadFile(fsys, path)
		if errors.Is(err, fs.ErrNotExist) {
			return s, nil
		}
		if err == nil {
			err = json.Unmarshal(b, &s.values)
		}
		if err != nil {
			return nil, fmt.Errorf("quorum: %s: %w", path, err)
		}
		return s, nil
	}
}

type fileState struct {
	fs   vfs.FS
	path string

	mu     sync.Mutex // held across disk I/O
	values map[string][]byte
}

func (s *fileState) Get(key string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.values[key], nil
}

func (s *fileState) Set(key string, value []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, had := s.values[key]
	s.values[key] = value
	b, err := json.Marshal(s.values)
	if err == nil {
		err = vfs.WriteFileAtomic(s.fs, s.path, b, 0o600)
	}
	if err != nil {
		if had {
			s.values[key] = before
		} else {
			delete(s.values, key)
		}
	}
	return err
}

func (s *fileState) Close() error { return nil }
