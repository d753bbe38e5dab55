package settings

import (
	"os"
	"path/filepath"

	"github.com/spf13/pflag"
)

// Names of the environment variables.
const (
	EnvAddr    = "FELIX_ADDR"
	EnvAdmin   = "FELIX_ADMIN"
	EnvTenant  = "FELIX_TENANT"
	EnvToken   = "FELIX_TOKEN"
	EnvCAFile  = "FELIX_CA_FILE"
	EnvContext = "FELIX_CONTEXT"
)

// DevContext is where a development broker that was started in this folder leaves its context file.
var DevContext = filepath.Join("data", "dev", "context.yaml")

// Flags are the flags that every command has which talks to a broker.
type Flags struct {
	Addr       []string
	Admin      string
	Tenant     string
	Token      string
	CAFile     string
	ServerName string
	Context    string
}

// Annotation marks the flags that say which broker, so that a command's help can show them apart from its own.
const Annotation = "felix_connection"

// Register adds the flags to a command's set.
func (f *Flags) Register(set *pflag.FlagSet) {
	set.StringSliceVar(&f.Addr, "addr", nil, "broker address host:port; several are tried in order (env "+EnvAddr+")")
	set.StringVar(&f.Admin, "admin", "", "admin address, host:port or URL; of several, separated by commas, the first that can be reached (env "+EnvAdmin+")")
	set.StringVar(&f.Tenant, "tenant", "", "tenant (env "+EnvTenant+")")
	set.StringVar(&f.Token, "token", "", "token, or @file to read it from a file (env "+EnvToken+")")
	set.StringVar(&f.CAFile, "ca-file", "", "PEM file with the certificates to trust (env "+EnvCAFile+")")
	set.StringVar(&f.ServerName, "server-name", "", "name to check the broker's certificate against, if not the address's own")
	set.StringVar(&f.Context, "context", "", "context file with what the other flags leave open (env "+EnvContext+"; default "+DevContext+", then felix/context.yaml in the user's configuration folder)")
	for _, name := range []string{"addr", "admin", "tenant", "token", "ca-file", "server-name", "context"} {
		_ = set.SetAnnotation(name, Annotation, []string{"true"}) // fails only for a flag that does not exist
	}
}

// Sources is the surroundings that settings are looked for in.
type Sources struct {
	// Getenv looks a variable up. Required.
	Getenv func(string) string
	// Dir is the folder that the default context file is relative to. "": the working directory.
	Dir string
	// UserConfig is the user's configuration folder. "": there is none.
	UserConfig string
}

// SystemSources are the process's own.
func SystemSources() Sources {
	user, err := os.UserConfigDir()
	if err != nil {
		user = "" // no home: then there is no file of the user's
	}
	return Sources{Getenv: os.Getenv, UserConfig: user}
}

func (s Sources) candidates() []string {
	found := []string{filepath.Join(s.Dir, DevContext)}
	if s.UserConfig != "" {
		found = append(found, filepath.Join(s.UserConfig, "felix", "context.yaml"))
	}
	return found
}
