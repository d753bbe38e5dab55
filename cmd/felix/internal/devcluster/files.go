package devcluster

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"felix.dev/felix/broker"
	"felix.dev/felix/broker/auth"
	"felix.dev/felix/broker/peer/pki"
	"felix.dev/felix/broker/vfs"
	"felix.dev/felix/cmd/felix/internal/settings"
)

const tokenFor = 30 * 24 * time.Hour

// write makes keys and certificates that are missing, and all configuration files.
func (c *Cluster) write(cfg *Config, now time.Time) error {
	jwks, err := c.writeKeys(now)
	if err != nil {
		return err
	}
	// Clients check the broker at an address as localhost, and trust another CA than brokers do: whoever may speak for a
	// broker to clients cannot join the cluster.
	serving, err := issued(filepath.Join(c.Dir, "tls", "ca"), filepath.Join(c.Dir, "tls"), "localhost", now)
	if err != nil {
		return err
	}
	c.CAFile = serving.CA
	peers := make([]string, len(c.Brokers))
	for i, b := range c.Brokers {
		peers[i] = b.Peer
	}
	for i, b := range c.Brokers {
		files, err := issued(filepath.Join(c.Dir, "ca"), filepath.Join(b.Dir, "peer"), b.Name, now)
		if err != nil {
			return err
		}
		bc := broker.Config{
			DataDir: b.DataDir(), NodeID: b.Name, Listen: b.Addr, Advertise: b.Addr,
			TLS:   broker.TLS{CertFile: serving.Cert, KeyFile: serving.Key},
			Admin: broker.Admin{Listen: b.Admin},
			Auth:  broker.Auth{Keys: map[string]string{Tenant: jwks}, SystemTenant: Tenant},
			Cluster: &broker.Cluster{
				Listen: b.Peer, Advertise: b.Peer, Join: others(peers, i), Found: i == 0,
				CAFile: files.CA, CertFile: files.Cert, KeyFile: files.Key,
			},
		}
		if cfg.Change != nil {
			cfg.Change(b.Name, &bc)
		}
		text, err := yaml.Marshal(bc)
		if err != nil {
			return err
		}
		if err := vfs.WriteFileAtomic(vfs.OS, b.ConfigFile(), text, 0o600); err != nil {
			return err
		}
	}
	return c.writeContext()
}

// issued makes a certificate, and a CA to sign it, as far as they are not there.
func issued(ca, dir, name string, now time.Time) (pki.Paths, error) {
	files := pki.In(dir)
	if _, err := os.Stat(files.Cert); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return files, err
	}
	if err := pki.CreateCA(ca, now); err != nil && !errors.Is(err, fs.ErrExist) {
		return files, err
	}
	return files, pki.Issue(ca, dir, name, now)
}

func others(all []string, i int) []string {
	return append(append([]string{}, all[:i]...), all[i+1:]...)
}

// writeKeys makes the key of the cluster's tokens, and a token. It returns the file by which brokers check tokens.
func (c *Cluster) writeKeys(now time.Time) (jwks string, err error) {
	path := filepath.Join(c.Dir, "key.pem")
	key, err := auth.LoadKey(vfs.OS, path)
	if errors.Is(err, fs.ErrNotExist) {
		if key, err = auth.GenerateKey(nil); err == nil {
			err = auth.SaveKey(vfs.OS, path, key)
		}
	}
	if err != nil {
		return "", err
	}
	set, err := auth.NewKeySet(key.Public())
	if err != nil {
		return "", err
	}
	jwks = filepath.Join(c.Dir, "keys.jwks")
	if err := auth.WriteJWKS(vfs.OS, jwks, set); err != nil {
		return "", err
	}
	const all = ":stream:" + Tenant + "/*"
	c.Token, err = auth.Mint(key, auth.Claims{
		Subject: "developer", Tenant: Tenant, IssuedAt: now, Expires: now.Add(tokenFor),
		Permissions: []string{"stream.publish" + all, "stream.subscribe" + all, "stream.manage" + all, "tenant.manage:cluster"},
	})
	return jwks, err
}

// writeContext leaves what the command line needs.
func (c *Cluster) writeContext() error {
	admins := make([]string, len(c.Brokers))
	for i, b := range c.Brokers {
		admins[i] = b.Admin
	}
	ca, err := filepath.Rel(c.Dir, c.CAFile)
	if err != nil {
		return err
	}
	text, err := yaml.Marshal(settings.ContextFile{
		Addr: strings.Join(c.Addrs(), ","), Admin: strings.Join(admins, ","), Tenant: Tenant, Token: c.Token, CAFile: ca,
	})
	if err != nil {
		return err
	}
	return vfs.WriteFileAtomic(vfs.OS, c.ContextFile, text, 0o600)
}

// LeaveContext puts the context file where the command line looks for one, or nowhere if that is where it is.
func (c *Cluster) LeaveContext(path string) error {
	at, err := filepath.Abs(path)
	if err != nil || at == c.ContextFile {
		return err
	}
	context, err := settings.ReadContextFile(c.ContextFile)
	if err != nil {
		return err
	}
	text, err := yaml.Marshal(context) // the path of the certificates is absolute now
	if err != nil {
		return err
	}
	if err := vfs.MkdirAllSync(vfs.OS, filepath.Dir(at), 0o700); err != nil {
		return err
	}
	return vfs.WriteFileAtomic(vfs.OS, at, text, 0o600)
}
