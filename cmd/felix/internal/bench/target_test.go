package bench

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"felix.dev/felix/broker/admin"
	"felix.dev/felix/client"
)

func TestParseMetrics(t *testing.T) {
	text := "# HELP felix_udp_gso_enabled 1 if\n# TYPE felix_udp_gso_enabled gauge\nfelix_udp_gso_enabled 1\nfelix_other{a=\"b\"} 3\nfelix_udp_gro_enabled 0\n"
	got, err := parseMetrics(strings.NewReader(text), gaugeGSO, gaugeGRO, "felix_missing")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got, map[string]float64{gaugeGSO: 1, gaugeGRO: 0}); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
	if _, err := parseMetrics(strings.NewReader("x y\n"), "x"); err == nil {
		t.Error("y is no number")
	}
}

func TestSpec(t *testing.T) {
	name := admin.Name{Tenant: "t", Namespace: "n", Stream: "s"}
	p := valid()
	want := admin.StreamSpec{Name: name, Durability: "Memory", Queue: admin.Queue{Entries: 21845, OnFull: "DropNew"}}
	if diff := cmp.Diff(p.spec(name), want); diff != "" {
		t.Errorf("memory (-got +want)\n%s", diff)
	}
	p.Durability, p.Fsync, p.OnFull, p.Queue = durabilityDurable, fsyncInterval, onFullCatchUp, 7
	want = admin.StreamSpec{
		Name: name, Durability: "Durable", Queue: admin.Queue{Entries: 7, OnFull: "CatchUp"}, Fsync: admin.Fsync{Mode: "Interval"},
	}
	if diff := cmp.Diff(p.spec(name), want); diff != "" {
		t.Errorf("durable (-got +want)\n%s", diff)
	}
}

// TestStreamsComeAndGo: streams that were made for a run are removed after it,
// others are left alone.
func TestStreamsComeAndGo(t *testing.T) {
	var made, gone []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/metrics":
			_, _ = w.Write([]byte(gaugeGSO + " 1\n" + gaugeGRO + " 0\n"))
		case r.Method == http.MethodPost:
			var req admin.CreateRequest
			if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
				t.Error(err)
			}
			made = append(made, req.Spec.String())
			w.WriteHeader(http.StatusCreated)
			_, _ = w.Write([]byte("{}"))
		case r.Method == http.MethodDelete:
			gone = append(gone, strings.TrimPrefix(r.URL.Path, "/v1/streams/"))
			w.WriteHeader(http.StatusNoContent)
		}
	}))
	defer srv.Close()
	p := valid()
	p.Streams = 2
	e := &external{access: access{cfg: client.Config{Tenant: "t"}, admin: newAdmin(strings.TrimPrefix(srv.URL, "http://"), "token")}}
	streams, err := e.streams(t.Context(), &p)
	if err != nil {
		t.Fatal(err)
	}
	if gso, gro := e.trains(t.Context()); gso == nil || !*gso || gro == nil || *gro {
		t.Errorf("trains: %v, %v", gso, gro)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	want := []string{"t/" + streams[0].String(), "t/" + streams[1].String()}
	if diff := cmp.Diff(made, want); diff != "" || streams[0] == streams[1] {
		t.Errorf("made (-got +want)\n%s", diff)
	}
	if diff := cmp.Diff(gone, want); diff != "" {
		t.Errorf("removed (-got +want)\n%s", diff)
	}

	e.stream = "shop/orders"
	for n, want := range map[int][]client.Stream{
		1: {{Namespace: "shop", Name: "orders"}},
		2: {{Namespace: "shop", Name: "orders-0"}, {Namespace: "shop", Name: "orders-1"}},
	} {
		p.Streams = n
		got, err := e.streams(t.Context(), &p)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(got, want); diff != "" {
			t.Errorf("(-got +want)\n%s", diff)
		}
	}
	gone = nil
	if err := e.Close(); err != nil || len(gone) > 0 {
		t.Errorf("closing removed %q, %v", gone, err)
	}
}

func TestUsageOfAStranger(t *testing.T) {
	e := &external{}
	if u, err := e.usage(t.Context(), momentLook); u != nil || err != nil {
		t.Errorf("usage %v, %v", u, err)
	}
	e.pid = -5
	if _, err := e.usage(t.Context(), momentLook); err == nil {
		t.Error("a process that cannot be has a usage")
	}
	if gso, gro := e.trains(t.Context()); gso != nil || gro != nil {
		t.Error("trains are known of a broker without an admin side")
	}
}
