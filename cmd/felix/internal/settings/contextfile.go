package settings

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// ContextFile is a file that says how to reach a broker. Every field may be missing.
type ContextFile struct {
	// Addr is the address of the QUIC listener, "host:port"; of a cluster's brokers several, separated by commas.
	Addr string `json:"addr,omitempty"`
	// Admin is the address of the HTTP admin, "host:port" or a URL; several as with Addr.
	Admin string `json:"admin,omitempty"`
	// Tenant and Token say who asks.
	Tenant string `json:"tenant,omitempty"`
	Token  string `json:"token,omitempty"`
	// CAFile holds the certificates to trust. A relative path starts at the context file's folder.
	CAFile string `json:"ca_file,omitempty"`
}

// ReadContextFile reads a context file strictly: a field that is not known is an error, because a mistyped one
// would otherwise be a setting that silently does nothing.
func ReadContextFile(path string) (ContextFile, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return ContextFile{}, fmt.Errorf("context file: %w", err)
	}
	var c ContextFile
	if err := yaml.UnmarshalStrict(data, &c); err != nil {
		return ContextFile{}, fmt.Errorf("context file %s: %w", path, err)
	}
	if c.CAFile != "" && !filepath.IsAbs(c.CAFile) {
		c.CAFile = filepath.Join(filepath.Dir(path), c.CAFile)
	}
	return c, nil
}

// findContextFile returns the first candidate that exists, or "" if none does. What exists and cannot be looked at
// is returned as well: reading it then gives an error, which is better than going on without it.
func findContextFile(candidates []string) string {
	for _, path := range candidates {
		if _, err := os.Stat(path); err == nil || !errors.Is(err, os.ErrNotExist) {
			return path
		}
	}
	return ""
}
