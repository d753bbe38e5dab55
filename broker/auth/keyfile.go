package auth

import (
	"errors"
	"fmt"
	"io/fs"

	"felix.dev/felix/broker/vfs"
)

// SaveKey writes a private key to a file that only its owner may read. It does
// not replace a file that is there: a key that was in use is not to be lost to a
// mistyped name.
func SaveKey(fsys vfs.FS, path string, key SigningKey) error {
	data, err := key.marshalPEM()
	if err != nil {
		return err
	}
	switch _, err := fsys.Stat(path); {
	case err == nil:
		return fmt.Errorf("auth: save key: %w", &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist})
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("auth: save key: %w", err)
	}
	if err := vfs.WriteFileAtomic(fsys, path, data, 0o600); err != nil {
		return fmt.Errorf("auth: save key: %w", err)
	}
	return nil
}

// LoadKey reads a private key that SaveKey, or any tool that writes PKCS #8 in
// PEM, has written.
func LoadKey(fsys vfs.FS, path string) (SigningKey, error) {
	data, err := vfs.ReadFile(fsys, path)
	if err != nil {
		return SigningKey{}, fmt.Errorf("auth: load key: %w", err)
	}
	key, err := parsePEM(data)
	if err != nil {
		return SigningKey{}, fmt.Errorf("%s: %w", path, err)
	}
	return key, nil
}

// WriteJWKS writes the public keys of a tenant for brokers to read. The file is
// replaced in one step, so that a broker that reloads it sees all or nothing.
func WriteJWKS(fsys vfs.FS, path string, set *KeySet) error {
	data, err := set.JWKS()
	if err != nil {
		return err
	}
	if err := vfs.WriteFileAtomic(fsys, path, data, 0o644); err != nil {
		return fmt.Errorf("auth: write key set: %w", err)
	}
	return nil
}
