package broker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"time"

	"sigs.k8s.io/yaml"

	"felix.dev/felix/broker/auth"
	"felix.dev/felix/broker/catalog"
	"felix.dev/felix/broker/vfs"
)

// Development mode: what it takes to try the broker without setting anything up.
const (
	devTenant   = "dev"
	devStream   = "demo"
	devTokenFor = 30 * 24 * time.Hour
)

// devContext is the file that the command line finds the broker by.
type devContext struct {
	Addr   string `json:"addr"`
	Admin  string `json:"admin,omitempty"`
	Tenant string `json:"tenant"`
	Token  string `json:"token"`
	CAFile string `json:"ca_file"`
}

// devKey reads the key of development mode, or makes it.
func devKey(dir string) (auth.SigningKey, error) {
	path := filepath.Join(dir, "key.pem")
	key, err := auth.LoadKey(vfs.OS, path)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if err := vfs.MkdirAllSync(vfs.OS, dir, 0o700); err != nil {
		return key, fmt.Errorf("broker: development mode: %w", err)
	}
	if key, err = auth.GenerateKey(nil); err != nil {
		return key, err
	}
	return key, auth.SaveKey(vfs.OS, path, key)
}

// devToken may do everything in the development tenant.
func devToken(key auth.SigningKey, now time.Time) (string, error) {
	const all = ":stream:" + devTenant + "/*"
	return auth.Mint(key, auth.Claims{
		Subject: "developer", Tenant: devTenant, IssuedAt: now, Expires: now.Add(devTokenFor),
		Permissions: []string{"stream.publish" + all, "stream.subscribe" + all, "stream.manage" + all},
	})
}

// writeDev leaves the token and the context file, now that the addresses are known.
func (b *Broker) writeDev(key auth.SigningKey, caFile string) error {
	token, err := devToken(key, time.Now())
	if err != nil {
		return err
	}
	dir := b.cfg.path(devName)
	c := devContext{Addr: reachable(b.Addr()), Tenant: devTenant, Token: token, CAFile: caFile}
	if a := b.AdminAddr(); a != nil {
		c.Admin = reachable(a)
		if b.cfg.Admin.TLS {
			c.Admin = "https://" + c.Admin
		}
	}
	// Relative to the file, so that the data directory can be moved.
	if rel, err := filepath.Rel(dir, caFile); err == nil {
		c.CAFile = rel
	}
	doc, err := yaml.Marshal(c)
	if err != nil {
		return fmt.Errorf("broker: development mode: %w", err)
	}
	for name, content := range map[string][]byte{"token": []byte(token + "\n"), "context.yaml": doc} {
		if err := vfs.WriteFileAtomic(vfs.OS, filepath.Join(dir, name), content, 0o600); err != nil {
			return fmt.Errorf("broker: development mode: %w", err)
		}
	}
	return nil
}

// makeDevStream makes the stream that the first examples use.
func (b *Broker) makeDevStream(ctx context.Context) error {
	name := catalog.Name{Tenant: devTenant, Namespace: catalog.DefaultNamespace, Stream: devStream}
	if _, err := b.streams.lookup(name); err == nil {
		return nil // whatever has become of it since
	}
	_, _, err := b.changes.create(ctx, catalog.StreamSpec{Name: name, Durability: catalog.Durable}, "development mode")
	return err
}

// reachable is an address to connect to, for one that was bound.
func reachable(a net.Addr) string {
	host, port, err := net.SplitHostPort(a.String())
	if err != nil {
		return a.String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// DevContext is where a broker in development mode leaves the file that the command
// line reads.
func DevContext(dataDir string) string { return filepath.Join(dataDir, devName, "context.yaml") }
