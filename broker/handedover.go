package broker

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"felix.dev/felix/broker/catalog"
	"felix.dev/felix/broker/vfs"
)

// handedName is the file that says that a durable shard was handed to another broker.
// Until the catalog has it there, or has called the move off, it takes nothing more
// here: not after a restart either, for the other one has all of it and may be about to
// become its owner.
const handedName = "HANDED"

// handed says to whom a shard was handed, and in which epoch of its owner.
type handed struct {
	Epoch uint64 `json:"epoch"`
	To    string `json:"to"`
}

func noteHanded(dir string, h handed) error {
	b, err := json.Marshal(h)
	if err == nil {
		err = vfs.WriteFileAtomic(vfs.OS, filepath.Join(dir, handedName), b, 0o640)
	}
	if err != nil {
		return fmt.Errorf("broker: shard handed over: %w", err)
	}
	return nil
}

// wasHanded says whether a shard was handed over in the move that its place speaks of. A
// note of another one is removed.
func wasHanded(dir string, p *catalog.ShardPlace) (bool, error) {
	path := filepath.Join(dir, handedName)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	var h handed
	if err == nil {
		err = json.Unmarshal(b, &h)
	}
	if err != nil {
		return false, fmt.Errorf("broker: shard handed over: %w", err)
	}
	if h.Epoch == p.Epoch && h.To == p.Moving {
		return true, nil
	}
	return false, forgetHanded(dir)
}

// forgetHanded removes the note; none there is no error.
func forgetHanded(dir string) error {
	if err := os.Remove(filepath.Join(dir, handedName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("broker: shard handed over: %w", err)
	}
	return nil
}
