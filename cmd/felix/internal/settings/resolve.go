package settings

import (
	"fmt"
	"os"
	"strings"
)

// Value is a setting and where it came from: "--addr", "FELIX_ADDR", the path of the context file, or "" if it is
// not set.
type Value struct {
	Value string
	From  string
}

// Settings is how to reach a broker. Addr holds one or more addresses, separated by commas.
type Settings struct {
	Addr, AdminAddr, Tenant, Token, CAFile Value
	ServerName                             string
	// Context is the context file that was read, "" if none was.
	Context string

	looked []string // the context files that were looked for in vain
}

// MissingError says that something needed is set nowhere. Trying again does not help.
type MissingError struct {
	// What is missing, and the flag and the variable that would set it.
	What, Flag, Env string
	// Looked are the context files that do not exist either.
	Looked []string
}

func (e *MissingError) Error() string {
	s := fmt.Sprintf("no %s: give %s, set %s, or use a context file", e.What, e.Flag, e.Env)
	if len(e.Looked) > 0 {
		s += fmt.Sprintf(" (there is none at %s; `felix serve --dev` writes the first)", strings.Join(e.Looked, " or "))
	}
	return s
}

// Resolve looks for every setting. That some are not set is no error here: not every command needs all.
func Resolve(f Flags, src Sources) (*Settings, error) {
	path := f.Context
	if path == "" {
		path = src.Getenv(EnvContext)
	}
	var looked []string
	if path == "" {
		looked = src.candidates()
		path = findContextFile(looked)
	}
	var file ContextFile
	if path != "" {
		looked = nil
		var err error
		if file, err = ReadContextFile(path); err != nil {
			return nil, err
		}
	}
	pick := func(flag, value, env, inFile string) Value {
		switch {
		case value != "":
			return Value{value, flag}
		case env != "" && src.Getenv(env) != "":
			return Value{src.Getenv(env), env}
		case inFile != "":
			return Value{inFile, path}
		}
		return Value{}
	}
	s := &Settings{
		Addr:       pick("--addr", strings.Join(f.Addr, ","), EnvAddr, file.Addr),
		AdminAddr:  pick("--admin", f.Admin, EnvAdmin, file.Admin),
		Tenant:     pick("--tenant", f.Tenant, EnvTenant, file.Tenant),
		Token:      pick("--token", f.Token, EnvToken, file.Token),
		CAFile:     pick("--ca-file", f.CAFile, EnvCAFile, file.CAFile),
		ServerName: f.ServerName,
		Context:    path,
		looked:     looked,
	}
	if name, ok := strings.CutPrefix(s.Token.Value, "@"); ok {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("token of %s: %w", s.Token.From, err)
		}
		s.Token.Value = strings.TrimSpace(string(data))
	}
	return s, nil
}

// missing reports the first of the given settings that is not set.
func (s *Settings) missing(need ...string) error {
	for _, what := range need {
		var v Value
		e := &MissingError{What: what, Looked: s.looked}
		switch what {
		case "broker address":
			v, e.Flag, e.Env = s.Addr, "--addr", EnvAddr
		case "admin address":
			v, e.Flag, e.Env = s.AdminAddr, "--admin", EnvAdmin
		case "tenant":
			v, e.Flag, e.Env = s.Tenant, "--tenant", EnvTenant
		case "token":
			v, e.Flag, e.Env = s.Token, "--token", EnvToken
		}
		if v.Value == "" {
			return e
		}
	}
	return nil
}
