package broker

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"felix.dev/felix/broker/server"
)

func TestReadConfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "felix.yaml")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`
data_dir: /var/lib/felix
listen: ":6000"
advertise: broker.example:6000
tls: {cert_file: a.crt, key_file: a.key, client_ca_file: ca.crt, client_auth: Optional}
auth: {keys: {t1: t1.json}}
limits: {connections: 100, auth_timeout: 5s}
streams: {on_full: CatchUp, fsync: Interval, fsync_every: 200ms}
egress: {lanes: 2, lane_policy: ConnectionIDHash}
`)
	got, err := ReadConfig(path)
	if err != nil {
		t.Fatal(err)
	}
	want := Config{
		DataDir: "/var/lib/felix", Listen: ":6000", Advertise: "broker.example:6000",
		TLS:     TLS{CertFile: "a.crt", KeyFile: "a.key", ClientCAFile: "ca.crt", ClientAuth: "Optional"},
		Auth:    Auth{Keys: map[string]string{"t1": "t1.json"}},
		Limits:  Limits{Connections: 100, AuthTimeout: Duration(5 * time.Second)},
		Streams: StreamDefaults{OnFull: "CatchUp", Fsync: "Interval", FsyncEvery: Duration(200 * time.Millisecond)},
		Egress:  Egress{Lanes: 2, LanePolicy: "ConnectionIDHash"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if err := got.Validate(); err != nil {
		t.Error(err)
	}
	write("listn: \":6000\"\n")
	if _, err := ReadConfig(path); err == nil || !strings.Contains(err.Error(), "listn") {
		t.Errorf("a mistyped field: %v", err)
	}
}

func TestValidateReportsEverything(t *testing.T) {
	c := Config{
		Listen: "nowhere", Advertise: "nohost", TLS: TLS{CertFile: "only", ClientAuth: "Maybe"},
		Streams: StreamDefaults{OnFull: "Explode", Fsync: "Never", TailBytes: -1},
		Egress:  Egress{LanePolicy: "Best"}, Limits: Limits{Connections: -1},
	}
	err := c.Validate()
	if err == nil {
		t.Fatal("accepted")
	}
	for _, part := range []string{"cert_file", "client_auth", "no keys", "listen", "on_full", "fsync", "lane_policy", "tail bytes", "connections", "advertised"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("nothing about %s in:\n%v", part, err)
		}
	}
	dev := Config{Dev: true}
	if err := dev.Validate(); err != nil {
		t.Errorf("development mode needs nothing: %v", err)
	}
}

func TestClientAuthOfConfig(t *testing.T) {
	for _, tt := range []struct {
		tls  TLS
		want server.ClientAuth
		ok   bool
	}{
		{TLS{}, server.ClientAuthNone, true},
		{TLS{ClientAuth: "None"}, server.ClientAuthNone, true},
		{TLS{ClientCAFile: "ca"}, server.ClientAuthRequired, true},
		{TLS{ClientCAFile: "ca", ClientAuth: "Optional"}, server.ClientAuthOptional, true},
		{TLS{ClientCAFile: "ca", ClientAuth: "None"}, 0, false}, // would be a file that does nothing
		{TLS{ClientAuth: "Required"}, 0, false},                 // would let nobody in
		{TLS{ClientCAFile: "ca", ClientAuth: "required"}, 0, false},
	} {
		got, err := tt.tls.clientAuth()
		if (err == nil) != tt.ok || tt.ok && got != tt.want {
			t.Errorf("%+v: got %s, %v", tt.tls, got, err)
		}
	}
}
