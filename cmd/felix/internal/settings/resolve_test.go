package settings

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// world is a folder with a context file in each place that is looked at by default.
type world struct {
	dir, user string
	env       map[string]string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{dir: t.TempDir(), user: t.TempDir(), env: map[string]string{}}
}

func (w *world) sources() Sources {
	return Sources{Getenv: func(k string) string { return w.env[k] }, Dir: w.dir, UserConfig: w.user}
}

func (w *world) devPath() string  { return filepath.Join(w.dir, DevContext) }
func (w *world) userPath() string { return filepath.Join(w.user, "felix", "context.yaml") }

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestResolveOrder(t *testing.T) {
	w := newWorld(t)
	write(t, w.devPath(), "addr: dev:1\nadmin: dev:2\ntenant: devtenant\ntoken: devtoken\nca_file: ca.pem\n")
	write(t, w.userPath(), "addr: user:1\n")
	other := filepath.Join(t.TempDir(), "other.yaml")
	write(t, other, "tenant: other\nca_file: /abs/ca.pem\n")
	secret := filepath.Join(t.TempDir(), "token")
	write(t, secret, "from-file\n")

	dev := w.devPath()
	fromDev := Settings{
		Addr: Value{"dev:1", dev}, AdminAddr: Value{"dev:2", dev}, Tenant: Value{"devtenant", dev}, Token: Value{"devtoken", dev},
		CAFile: Value{filepath.Join(filepath.Dir(dev), "ca.pem"), dev}, Context: dev,
	}
	with := func(s Settings, change func(*Settings)) *Settings { change(&s); return &s }

	for _, c := range []struct {
		name  string
		flags Flags
		env   map[string]string
		want  *Settings
	}{
		{name: "the file of the dev broker", want: &fromDev},
		{
			name: "a variable beats the file", env: map[string]string{EnvTenant: "envtenant"},
			want: with(fromDev, func(s *Settings) { s.Tenant = Value{"envtenant", EnvTenant} }),
		},
		{
			name: "a flag beats the variable", flags: Flags{Tenant: "flagtenant", Addr: []string{"a:1", "b:1"}},
			env: map[string]string{EnvTenant: "envtenant", EnvAddr: "env:1"},
			want: with(fromDev, func(s *Settings) {
				s.Tenant, s.Addr = Value{"flagtenant", "--tenant"}, Value{"a:1,b:1", "--addr"}
			}),
		},
		{
			name: "a named file replaces the default ones", flags: Flags{Context: other},
			want: &Settings{Tenant: Value{"other", other}, CAFile: Value{"/abs/ca.pem", other}, Context: other},
		},
		{
			name: "so does a file named by a variable", env: map[string]string{EnvContext: other},
			want: &Settings{Tenant: Value{"other", other}, CAFile: Value{"/abs/ca.pem", other}, Context: other},
		},
		{
			name: "a token in a file", flags: Flags{Token: "@" + secret},
			want: with(fromDev, func(s *Settings) { s.Token = Value{"from-file", "--token"} }),
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			w.env = c.env
			got, err := Resolve(c.flags, w.sources())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(got, c.want, cmpopts.IgnoreUnexported(Settings{})); diff != "" {
				t.Errorf("(-got +want)\n%s", diff)
			}
		})
	}

	t.Run("the user's file if there is no dev broker", func(t *testing.T) {
		w.env = nil
		if err := os.Remove(w.devPath()); err != nil {
			t.Fatal(err)
		}
		got, err := Resolve(Flags{}, w.sources())
		if err != nil {
			t.Fatal(err)
		}
		if want := (Value{"user:1", w.userPath()}); got.Addr != want {
			t.Errorf("got %v, want %v", got.Addr, want)
		}
	})
}

func TestResolveErrors(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		name, file string
		flags      Flags
		want       string
	}{
		{name: "a field that is not known", file: "addresses: x\n", want: "addresses"},
		{name: "not YAML", file: "\t{", want: "context.yaml"},
		{name: "a named file that is not there", flags: Flags{Context: "/nowhere/context.yaml"}, want: "/nowhere/context.yaml"},
		{name: "a token file that is not there", flags: Flags{Token: "@/nowhere/token"}, want: "token of --token"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.file != "" {
				write(t, w.devPath(), c.file)
				defer func() { _ = os.Remove(w.devPath()) }()
			}
			_, err := Resolve(c.flags, w.sources())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want something with %q", err, c.want)
			}
		})
	}
}

func TestClientConfig(t *testing.T) {
	w := newWorld(t)
	s, err := Resolve(Flags{Tenant: "t", Token: "x"}, w.sources())
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Client(nil)
	var missing *MissingError
	if !errors.As(err, &missing) || missing.Flag != "--addr" || !strings.Contains(err.Error(), w.devPath()) {
		t.Errorf("got %v, want a *MissingError for --addr that names the default file", err)
	}
	if _, err := s.Admin(); !errors.As(err, &missing) || missing.Flag != "--admin" {
		t.Errorf("got %v, want a *MissingError for --admin", err)
	}

	// A token of the file is read anew, others are not.
	write(t, w.devPath(), "addr: a:1, b:2\ntenant: dev\ntoken: old\nadmin: h:1\n")
	if s, err = Resolve(Flags{}, w.sources()); err != nil {
		t.Fatal(err)
	}
	cfg, err := s.Client(nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(cfg.Addrs, []string{"a:1", "b:2"}); diff != "" {
		t.Errorf("addresses (-got +want)\n%s", diff)
	}
	write(t, w.devPath(), "addr: a:1\ntenant: dev\ntoken: new\n")
	if token, err := cfg.TokenSource(t.Context()); token != "new" || err != nil {
		t.Errorf("got %q, %v, want the new token", token, err)
	}
	if c, err := s.Admin(); err != nil || c.BaseURL != "http://h:1" || c.Token != "old" {
		t.Errorf("got %+v, %v", c, err)
	}

	if s, err = Resolve(Flags{Token: "x", Admin: "https://h:1/"}, w.sources()); err != nil {
		t.Fatal(err)
	}
	if cfg, err = s.Client(nil); err != nil || cfg.TokenSource != nil {
		t.Errorf("a token of a flag came with a source, or %v", err)
	}
	if c, err := s.Admin(); err != nil || c.BaseURL != "https://h:1" || c.Token != "x" {
		t.Errorf("got %+v, %v", c, err)
	}

	// An https admin is checked against the certificates of the settings, and a file without any is an error.
	empty := filepath.Join(t.TempDir(), "empty.pem")
	write(t, empty, "nothing")
	if s, err = Resolve(Flags{Token: "x", Admin: "https://h:1", CAFile: empty}, w.sources()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Admin(); err == nil || !strings.Contains(err.Error(), empty) {
		t.Errorf("got %v, want an error that names %s", err, empty)
	}
}
