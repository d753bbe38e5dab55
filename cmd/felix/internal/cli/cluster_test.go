package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"felix.dev/felix/broker/admin"
	"felix.dev/felix/cmd/felix/internal/settings"
)

// fakeAdmin answers as a broker of a cluster does whose status changes with every question.
type fakeAdmin struct {
	*httptest.Server

	mu     sync.Mutex
	asked  []string
	pages  []admin.ClusterStatus // the last one stays
	refuse *admin.Error          // what changes are answered with
}

func newFakeAdmin(t *testing.T, pages ...admin.ClusterStatus) *fakeAdmin {
	t.Helper()
	f := &fakeAdmin{pages: pages}
	f.Server = httptest.NewServer(http.HandlerFunc(f.answer))
	t.Cleanup(f.Close)
	return f
}

func (f *fakeAdmin) answer(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.Method == http.MethodGet {
		_ = json.NewEncoder(w).Encode(f.pages[0]) // the test sees what is missing
		if len(f.pages) > 1 {
			f.pages = f.pages[1:]
		}
		return
	}
	var req admin.ClusterRequest
	_ = json.NewDecoder(r.Body).Decode(&req) // likewise
	f.asked = append(f.asked, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", r.Method, r.URL, req.From, req.To)))
	if req.RequestID == "" {
		f.asked = append(f.asked, "without a request id")
	}
	if f.refuse != nil {
		w.WriteHeader(http.StatusConflict)
		_ = json.NewEncoder(w).Encode(f.refuse) // likewise
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// run runs a command line against it.
func (f *fakeAdmin) run(t *testing.T, status int, args ...string) (out, errs string) {
	t.Helper()
	var stdout, stderr screen
	env := Env{Stdout: &stdout, Stderr: &stderr, Sources: settings.Sources{Getenv: func(string) string { return "" }}}
	got := Run(context.Background(), env, append(args, "--admin", f.URL, "--tenant", "system", "--token", "x"))
	if got != status {
		t.Errorf("%q: exit status %d, want %d\n%s", args, got, status, stderr.String())
	}
	return stdout.String(), stderr.String()
}

func member(node string, voter bool, lag uint64) admin.ClusterMember {
	return admin.ClusterMember{Node: node, Instance: "1", Voter: voter, Up: true, CaughtUp: lag == 0, Lag: lag}
}

// seen is a cluster of a, b and c, with one group that a leads.
func seen(members ...admin.ClusterMember) admin.ClusterStatus {
	st := admin.ClusterStatus{Cluster: "c1", Asked: "a", Leader: "b", Replicas: 3}
	for _, node := range []string{"a", "b", "c"} {
		st.Brokers = append(st.Brokers, admin.ClusterBroker{
			Node: node, Instance: "1", Peer: node + ":5002", Client: node + ":5000", Up: true, Replicas: 1, InSync: true, CanStop: true,
		})
	}
	st.Groups = []admin.ClusterGroup{{Group: 1, Target: []string{"a", "b", "c"}, Leader: "a", Term: 3, Members: members}}
	return st
}

func wholeCluster() admin.ClusterStatus {
	return seen(member("a", true, 0), member("b", true, 0), member("c", true, 0))
}

func wants(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%q is missing in\n%s", p, text)
		}
	}
}

func TestClusterStatus(t *testing.T) {
	st := seen(member("a", true, 0), member("b", true, 5), member("c", false, 900))
	st.Problem = "no majority"
	st.Brokers[2].Up, st.Brokers[2].InSync, st.Brokers[2].Trouble = false, false, "connection refused"
	st.Brokers[1].Draining = true
	st.Groups[0].Next = "c catches up: 900 entries to go"
	st.Moves = []admin.ClusterMove{{Name: admin.Name{Tenant: "t", Namespace: "n", Stream: "s"}, Shard: 2, From: "a", To: "b", Problem: "no route"}}
	f := newFakeAdmin(t, st)
	out, _ := f.run(t, 0, "cluster", "status")
	wants(t, out, "cluster c1, metadata led by b, as a sees it", "no majority", "away", "draining", "connection refused", "a b c+", "900",
		"c catches up: 900 entries to go", "t/n/s", "no route")
	out, _ = f.run(t, 0, "cluster", "status", "-o", "json")
	var got admin.ClusterStatus
	if err := json.Unmarshal([]byte(out), &got); err != nil || got.Groups[0].Members[2].Lag != 900 {
		t.Errorf("got %v, %s", err, out)
	}
}

func TestClusterDrain(t *testing.T) {
	one, two, done := wholeCluster(), wholeCluster(), wholeCluster()
	one.Brokers[2].Leads, one.Brokers[2].Shards, one.Brokers[2].Voter = 1, 2, true
	one.Groups[0].Next = "d catches up: 90 entries to go"
	two.Brokers[2].Replicas, two.Brokers[2].Shards = 0, 1
	two.Moves = []admin.ClusterMove{{Name: admin.Name{Tenant: "t", Namespace: "n", Stream: "s"}, From: "c", To: "b", Problem: "no route"}}
	done.Brokers[2].Replicas, done.Brokers[2].Draining = 0, true
	f := newFakeAdmin(t, one, two, two, done)
	out, errs := f.run(t, 0, "cluster", "drain", "c")
	if out != "drained c: it holds nothing\n" {
		t.Errorf("got %q", out)
	}
	const want = "c still holds 1 replica, 1 leadership, 2 shards, a vote on the catalog; group 1: d catches up: 90 entries to go\n" +
		"c still holds 1 shard; shard 0 of t/n/s: no route\n"
	if errs != want {
		t.Errorf("got\n%s\nwant\n%s", errs, want)
	}
	f = newFakeAdmin(t, done)
	if out, _ := f.run(t, 0, "cluster", "drain", "c", "-o", "json"); !strings.Contains(out, `"node": "c"`) {
		t.Errorf("got %s", out)
	}
	f = newFakeAdmin(t, one)
	_, errs = f.run(t, 1, "cluster", "drain", "c", "--timeout", "50ms")
	wants(t, errs, "drain c is not done yet and goes on in the cluster (c still holds", "retrying helps")
	if out, errs = f.run(t, 0, "cluster", "drain", "c", "--no-wait"); out != "draining c\n" || errs != "" {
		t.Errorf("got %q, %q", out, errs)
	}
}

func TestClusterChanges(t *testing.T) {
	moved := seen(member("a", true, 0), member("b", true, 0), member("d", true, 0))
	for _, tc := range []struct {
		args  []string
		pages []admin.ClusterStatus
		asked string
		out   string
		errs  string
	}{
		{[]string{"undrain", "c"}, nil, "POST /v1/cluster/brokers/c/undrain", "c takes part again\n", ""},
		{[]string{"remove", "c"}, nil, "DELETE /v1/cluster/brokers/c", "removed c\n", ""},
		{[]string{"remove", "c", "--force"}, nil, "DELETE /v1/cluster/brokers/c?force=true", "removed c\n", ""},
		{[]string{"transfer", "4", "b"}, nil, "POST /v1/cluster/groups/4/transfer  b", "group 4 is led by b\n", ""},
		{[]string{"transfer", "4"}, nil, "POST /v1/cluster/groups/4/transfer", "group 4 is led by the broker that should lead it\n", ""},
		{
			[]string{"move", "1", "--from", "c", "--to", "d"},
			[]admin.ClusterStatus{
				wholeCluster(), seen(member("a", true, 0), member("b", true, 0), member("c", true, 0), member("d", false, 70)), moved,
			},
			"POST /v1/cluster/groups/1/move c d", "moved group 1 from c to d\n", "group 1: d is to join\ngroup 1: d catches up, 70 entries to go\n",
		},
		{
			[]string{"balance"},
			[]admin.ClusterStatus{{Groups: []admin.ClusterGroup{{
				Target: []string{"b"}, Leader: "a", Members: []admin.ClusterMember{member("a", true, 0), member("b", true, 0)},
			}}, Brokers: []admin.ClusterBroker{{Node: "b"}}}, wholeCluster()},
			"POST /v1/cluster/balance", "balanced: a leads 0, b leads 0, c leads 0\n", "1 group to be led by another broker\n",
		},
	} {
		t.Run(strings.Join(tc.args, " "), func(t *testing.T) {
			f := newFakeAdmin(t, append(tc.pages, wholeCluster())...)
			out, errs := f.run(t, 0, append([]string{"cluster"}, tc.args...)...)
			if out != tc.out || errs != tc.errs || strings.Join(f.asked, ", ") != tc.asked {
				t.Errorf("asked %q and got\n%s%s", f.asked, out, errs)
			}
		})
	}
}

func TestClusterRefusals(t *testing.T) {
	f := newFakeAdmin(t, wholeCluster())
	f.refuse = &admin.Error{Code: admin.CodeRefused, Retry: admin.RetryFatal, Message: "broker c still holds replicas of groups [1]: drain it"}
	_, errs := f.run(t, 1, "cluster", "remove", "c")
	wants(t, errs, "felix: remove c: refused: broker c still holds replicas of groups [1]: drain it; retrying does not help")
	f.refuse = &admin.Error{Code: admin.CodeNoLeader, Retry: admin.RetryAfter, Message: "no majority"}
	_, errs = f.run(t, 1, "cluster", "drain", "c")
	wants(t, errs, "felix: drain c: no_leader: no majority; retrying helps")
	for _, args := range [][]string{
		{"drain"}, {"move", "1"}, {"move", "x", "--from", "a", "--to", "b"}, {"move", "1", "--from", "a", "--to", "a"}, {"transfer"}, {"transfer", "-1"}, {"explode"},
	} {
		f.run(t, 2, append([]string{"cluster"}, args...)...)
	}
}
