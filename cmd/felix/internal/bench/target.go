package bench

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"felix.dev/felix/broker/admin"
	"felix.dev/felix/broker/catalog"
	"felix.dev/felix/client"
	"felix.dev/felix/cmd/felix/internal/settings"
)

// moment is what a broker process is told, and answers with its usage.
type moment string

const (
	momentLook    moment = "look"    // just look
	momentCollect moment = "collect" // collect garbage first
	momentTrim    moment = "trim"    // and give free memory back to the system
	momentBegin   moment = "begin"   // the measured part begins: peak and profile start here
	momentEnd     moment = "end"     // the measured part is over
)

// target is a broker under load.
type target interface {
	// client is how to connect to it.
	client() client.Config
	// streams makes the streams of a run. They go when the target is closed.
	streams(ctx context.Context, p *params) ([]client.Stream, error)
	// trains says whether the broker's socket sends and receives datagrams in
	// trains; nil: not known.
	trains(ctx context.Context) (gso, gro *bool)
	// usage is nil when it cannot be known.
	usage(ctx context.Context, m moment) (*usage, error)
	Close() error
}

// access is a broker's client and admin side.
type access struct {
	cfg   client.Config
	admin *admin.Client // nil: not known
	// made are the streams to remove at the end.
	made []admin.Name
}

func (a *access) client() client.Config { return a.cfg }

func (a *access) streams(ctx context.Context, p *params) ([]client.Stream, error) {
	var out []client.Stream
	nonce := make([]byte, 4)
	_, _ = rand.Read(nonce) // never fails
	for i := range p.Streams {
		s := client.Stream{Namespace: catalog.DefaultNamespace, Name: fmt.Sprintf("bench-%x-%d", nonce, i)}
		spec := p.spec(admin.Name{Tenant: a.cfg.Tenant, Namespace: s.Namespace, Stream: s.Name})
		if _, _, err := a.admin.CreateStream(ctx, spec, hex.EncodeToString(nonce)+strconv.Itoa(i)); err != nil {
			return nil, fmt.Errorf("bench: make stream %v: %w", s, err)
		}
		a.made = append(a.made, spec.Name)
		out = append(out, s)
	}
	return out, nil
}

// spec is what the admin is asked for.
func (p *params) spec(name admin.Name) admin.StreamSpec {
	s := admin.StreamSpec{Name: name, Durability: string(catalog.Memory), Queue: admin.Queue{Entries: p.queueEntries()}}
	s.Queue.OnFull = map[string]string{
		onFullDrop: string(catalog.DropNew), onFullBlock: string(catalog.Block), onFullCatchUp: string(catalog.CatchUp),
	}[p.OnFull]
	if p.Durability == durabilityQuorum {
		s.Durability = string(catalog.Quorum)
	}
	if p.Durability == durabilityDurable {
		s.Durability = string(catalog.Durable)
		s.Fsync.Mode = map[string]string{
			fsyncAlways: string(catalog.FsyncAlways), fsyncInterval: string(catalog.FsyncInterval),
		}[p.Fsync]
	}
	return s
}

// The gauges that say whether trains are on.
const (
	gaugeGSO = "felix_udp_gso_enabled"
	gaugeGRO = "felix_udp_gro_enabled"
)

func (a *access) trains(ctx context.Context) (gso, gro *bool) {
	if a.admin == nil {
		return nil, nil
	}
	values, err := scrape(ctx, a.admin, gaugeGSO, gaugeGRO)
	if err != nil {
		return nil, nil // not known
	}
	on := func(name string) *bool {
		v, ok := values[name]
		if !ok {
			return nil
		}
		return new(v == 1)
	}
	return on(gaugeGSO), on(gaugeGRO)
}

// remove deletes the streams that were made, and closes the admin's connections.
func (a *access) remove(ctx context.Context) error {
	var errs []error
	for _, n := range a.made {
		if err := a.admin.DeleteStream(ctx, n); err != nil {
			errs = append(errs, fmt.Errorf("bench: remove stream %v: %w", n, err))
		}
	}
	a.made = nil
	return errors.Join(errs...)
}

func (a *access) closeIdle() {
	if a.admin != nil && a.admin.HTTP != nil {
		a.admin.HTTP.CloseIdleConnections()
	}
}

// external is a broker that somebody else has started.
type external struct {
	access
	stream string // exists already; with several, what comes before -0, -1, ...
	pid    int    // 0: not known
}

// externalFlags are the flags that say where a broker is.
type externalFlags struct {
	settings.Flags
	stream string
	pid    int
}

func (f *externalFlags) target(src settings.Sources) (target, error) {
	s, err := settings.Resolve(f.Flags, src)
	if err != nil {
		return nil, err
	}
	e := &external{stream: f.stream, pid: f.pid}
	if e.cfg, err = s.Client(nil); err != nil {
		return nil, err
	}
	if s.AdminAddr.Value != "" {
		if e.admin, err = s.Admin(); err != nil {
			return nil, err
		}
	}
	if e.admin == nil && e.stream == "" {
		return nil, errors.New("bench: a stream is needed: --admin to make one, or --stream with one that is there")
	}
	return e, nil
}

func (e *external) streams(ctx context.Context, p *params) ([]client.Stream, error) {
	if e.stream == "" {
		return e.access.streams(ctx, p)
	}
	namespace, name, found := strings.Cut(e.stream, "/")
	if !found {
		namespace, name = catalog.DefaultNamespace, e.stream
	}
	if p.Streams == 1 {
		return []client.Stream{{Namespace: namespace, Name: name}}, nil
	}
	var out []client.Stream
	for i := range p.Streams {
		out = append(out, client.Stream{Namespace: namespace, Name: fmt.Sprintf("%s-%d", name, i)})
	}
	return out, nil
}

func (e *external) usage(context.Context, moment) (*usage, error) {
	if e.pid == 0 {
		return nil, nil //nolint:nilnil // nothing is known, and that is no error
	}
	u, err := otherUsage(e.pid)
	if err != nil {
		return nil, err
	}
	return &u, nil
}

func (e *external) Close() error {
	defer e.closeIdle()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return e.remove(ctx)
}

// newAdmin makes a client of an admin on this machine.
func newAdmin(addr, token string) *admin.Client {
	return &admin.Client{BaseURL: "http://" + addr, Token: token, HTTP: &http.Client{Transport: &http.Transport{}}}
}
