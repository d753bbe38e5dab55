package broker

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"felix.dev/felix/broker/vfs"
)

// instanceOf is the identity of a data directory, made with it: a broker that lost its
// data is another one, whatever it is called, and cannot vote for what it has lost.
func instanceOf(path string) (string, error) {
	b, err := os.ReadFile(path)
	if err == nil {
		id := strings.TrimSpace(string(b))
		if raw, err := hex.DecodeString(id); err != nil || len(raw) != instanceBytes {
			return "", fmt.Errorf("broker: %s is damaged: it holds %q, not %d hexadecimal digits", path, id, 2*instanceBytes)
		}
		return id, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("broker: instance: %w", err)
	}
	raw := make([]byte, instanceBytes)
	_, _ = rand.Read(raw) // documented never to fail
	id := hex.EncodeToString(raw)
	if err := vfs.WriteFileAtomic(vfs.OS, path, []byte(id+"\n"), 0o640); err != nil {
		return "", fmt.Errorf("broker: instance: %w", err)
	}
	return id, nil
}

const instanceBytes = 8
