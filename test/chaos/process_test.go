//go:build chaos

package chaos

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"felix.dev/felix/broker"
	"felix.dev/felix/broker/admin"
	"felix.dev/felix/broker/auth"
	"felix.dev/felix/broker/server"
	"felix.dev/felix/broker/vfs"
	"felix.dev/felix/client"
)

const (
	binaryVariable = "FELIX_BINARY"

	tenant    = "dev" // that of a prepared cluster
	namespace = "default"
	// patience bounds every wait. Nothing is measured by it.
	patience = 90 * time.Second
)

// felixBinary is felix: FELIX_BINARY, or built once for all tests; its folder goes with the tests.
var felixBinary = sync.OnceValues(func() (string, error) {
	if path := os.Getenv(binaryVariable); path != "" {
		return path, nil
	}
	dir, err := os.MkdirTemp("", "felix-chaos-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "felix")
	cmd := exec.Command("go", "build", "-o", path, "felix.dev/felix/cmd/felix")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build felix: %w\n%s", err, out)
	}
	return path, nil
})

// process is a broker that can be killed and started again with its data.
type process struct {
	t           *testing.T
	felix       string
	dir         string // of data, configuration and identity
	name        string // of the node
	addr, admin string
	token, ca   string

	cmd    *exec.Cmd     // nil: not running
	exited chan struct{} // closed when cmd is over
	err    error         // of cmd, once it is
	log    *os.File
}

// newProcess prepares a broker; start runs it.
func newProcess(t *testing.T) *process {
	t.Helper()
	felix, err := felixBinary()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, felix: felix, dir: t.TempDir(), name: "chaos", addr: freeUDP(t), admin: freeTCP(t)}
	made, err := server.EnsureSelfSigned(p.dir, nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	p.ca = made.CertFile
	key, err := auth.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	set, err := auth.NewKeySet(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	jwks := filepath.Join(p.dir, "keys.jwks")
	if err := auth.WriteJWKS(vfs.OS, jwks, set); err != nil {
		t.Fatal(err)
	}
	all := ":stream:" + tenant + "/*"
	p.token, err = auth.Mint(key, auth.Claims{
		Subject: "chaos", Tenant: tenant, IssuedAt: time.Now(), Expires: time.Now().Add(24 * time.Hour),
		Permissions: []string{"stream.publish" + all, "stream.subscribe" + all, "stream.manage" + all},
	})
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := yaml.Marshal(broker.Config{
		DataDir: p.data(), Listen: p.addr, NodeID: "chaos",
		TLS:   broker.TLS{CertFile: made.CertFile, KeyFile: made.KeyFile},
		Auth:  broker.Auth{Keys: map[string]string{tenant: jwks}},
		Admin: broker.Admin{Listen: p.admin},
		// Small, so that every round has rolls, reads from logs and lag notices.
		Streams: broker.StreamDefaults{SegmentBytes: 256 << 10, TailBytes: 256 << 10, QueueEntries: 16},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.dir, "broker.yaml"), cfg, 0o600); err != nil {
		t.Fatal(err)
	}
	p.attend()
	return p
}

// attend opens the log, and sees to the process's end.
func (p *process) attend() {
	p.t.Helper()
	var err error
	if p.log, err = os.Create(filepath.Join(p.dir, "broker.log")); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		p.kill()
		_ = p.log.Close()
		if p.t.Failed() {
			p.showLog()
		}
	})
}

func (p *process) data() string { return filepath.Join(p.dir, "data") }

// showLog prints the end of what the broker had to say.
func (p *process) showLog() {
	b, err := os.ReadFile(p.log.Name())
	if err != nil {
		p.t.Log(err)
		return
	}
	const end = 6 << 10
	p.t.Logf("the last words of broker %s:\n%s", p.name, b[max(0, len(b)-end):])
}

// says counts what the broker has said.
func (p *process) says(what string) int {
	p.t.Helper()
	b, err := os.ReadFile(p.log.Name())
	if err != nil {
		p.t.Fatal(err)
	}
	return strings.Count(string(b), what)
}

// start runs the broker and waits until it serves.
func (p *process) start() {
	p.t.Helper()
	p.run()
	p.until("the broker serves", func() bool {
		select {
		case <-p.exited:
			p.t.Fatalf("the broker ended instead of serving: %v", p.err)
		default:
		}
		ctx, cancel := context.WithTimeout(p.t.Context(), time.Second)
		defer cancel()
		r, err := p.http().Readiness(ctx)
		return err == nil && r.Ready
	})
}

// startInVain runs the broker and kills it while it may still be opening its logs.
func (p *process) startInVain(after time.Duration) {
	p.t.Helper()
	p.run()
	select {
	case <-time.After(after):
	case <-p.exited:
		p.t.Fatalf("the broker ended by itself: %v", p.err)
	}
	p.kill()
}

// run starts the process.
func (p *process) run() {
	p.t.Helper()
	cmd := exec.Command(p.felix, "serve", "--config", filepath.Join(p.dir, "broker.yaml"), "--log-format", "text")
	cmd.Stdout, cmd.Stderr = p.log, p.log
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.cmd, p.exited = cmd, make(chan struct{})
	go func() {
		p.err = cmd.Wait()
		close(p.exited)
	}()
}

// until polls for a condition.
func (p *process) until(what string, ok func() bool) {
	p.t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			p.t.Fatalf("not within %s: %s", patience, what)
		}
	}
}

// kill is kill -9. The broker may have ended by itself.
func (p *process) kill() {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Kill() // it may be over
	<-p.exited
	p.cmd = nil
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// terminate asks for a shutdown and wants a good one.
func (p *process) terminate() {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(patience):
		p.t.Fatalf("the broker has not ended %s after SIGTERM", patience)
	}
	p.cmd = nil
	if p.err != nil {
		p.t.Fatalf("shutdown: %v", p.err)
	}
}

// inspect is `felix inspect` on the data of a broker that is down.
func (p *process) inspect(wantClean bool) {
	p.t.Helper()
	out, err := exec.Command(p.felix, "inspect", p.data()).CombinedOutput()
	const repairable = 3 // the exit status
	exit, ended := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
	case ended && exit.ExitCode() == repairable && !wantClean:
	default:
		p.t.Fatalf("felix inspect: %v\n%s", err, out)
	}
}

func (p *process) http() *admin.Client {
	return &admin.Client{BaseURL: "http://" + p.admin, Token: p.token, HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
}

func (p *process) create(name string, change func(*admin.StreamSpec)) {
	p.t.Helper()
	spec := admin.StreamSpec{Name: admin.Name{Tenant: tenant, Namespace: namespace, Stream: name}}
	change(&spec)
	if _, _, err := p.http().CreateStream(p.t.Context(), spec, ""); err != nil {
		p.t.Fatal(err)
	}
}

// shards shows a stream.
func (p *process) shards(name string) []admin.Shard {
	p.t.Helper()
	s, err := p.http().Stream(p.t.Context(), admin.Name{Tenant: tenant, Namespace: namespace, Stream: name})
	if err != nil {
		p.t.Fatal(err)
	}
	return s.Shards
}

// dial makes a client. It lives as long as the test, whatever becomes of the broker.
func (p *process) dial(change ...func(*client.Config)) *client.Client {
	p.t.Helper()
	cfg := client.Config{
		Addrs: []string{p.addr}, Tenant: tenant, Token: p.token, CAFile: p.ca,
		// What was killed is to be noticed before it is killed again.
		IdleTimeout: 800 * time.Millisecond, KeepAlive: 200 * time.Millisecond,
	}
	for _, f := range change {
		f(&cfg)
	}
	c, err := client.Dial(p.t.Context(), cfg)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		if err := c.Close(); err != nil && !strings.Contains(err.Error(), "closed") {
			p.t.Errorf("close client: %v", err)
		}
	})
	return c
}
