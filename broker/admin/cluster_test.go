package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fakeCluster notes what it was asked for.
type fakeCluster struct {
	status ClusterStatus
	asked  []string
	err    error
}

func (f *fakeCluster) note(format string, args ...any) error {
	f.asked = append(f.asked, fmt.Sprintf(format, args...))
	return f.err
}

// ClusterStatus implements Cluster.
func (f *fakeCluster) ClusterStatus(context.Context) (ClusterStatus, error) { return f.status, f.err }

// SetDraining implements Cluster.
func (f *fakeCluster) SetDraining(_ context.Context, node string, draining bool) error {
	return f.note("draining %s %v", node, draining)
}

// RemoveBroker implements Cluster.
func (f *fakeCluster) RemoveBroker(_ context.Context, node string, force bool) error {
	return f.note("remove %s %v", node, force)
}

// MoveReplica implements Cluster.
func (f *fakeCluster) MoveReplica(_ context.Context, group uint32, from, to string) error {
	return f.note("move %d %s %s", group, from, to)
}

// TransferLeader implements Cluster.
func (f *fakeCluster) TransferLeader(_ context.Context, group uint32, to string) error {
	return f.note("transfer %d %s", group, to)
}

// BalanceLeaders implements Cluster.
func (f *fakeCluster) BalanceLeaders(context.Context) error { return f.note("balance") }

func newClusterHouse(t *testing.T) (*house, *fakeCluster) {
	t.Helper()
	f := &fakeCluster{status: ClusterStatus{
		Cluster: "c1", Asked: "a", Leader: "b", Index: 7, Replicas: 3,
		Brokers: []ClusterBroker{{
			Node: "a", Instance: "1", Peer: "a:5002", Joined: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), Up: true,
			Replicas: 8, Leads: 3, InSync: true, Because: []string{"group 1 would have 1 of 2 voters that it needs without it"},
		}},
		Groups: []ClusterGroup{{Group: 1, Target: []string{"a", "b"}, Leader: "a", Term: 4, Members: []ClusterMember{{Node: "a", Instance: "1", Voter: true}}}},
		Moves:  []ClusterMove{{Name: named("s"), Shard: 2, From: "a", To: "b"}},
	}}
	return newHouse(t, func(c *Config) { c.Cluster = f }), f
}

func TestClusterCalls(t *testing.T) {
	h, f := newClusterHouse(t)
	c := h.client(systemTenant, "tenant.manage:*")
	ctx := t.Context()
	got, err := c.ClusterStatus(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got, f.status); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
	for _, err := range []error{
		c.DrainBroker(ctx, "a", "r1"), c.UndrainBroker(ctx, "a", ""), c.RemoveBroker(ctx, "a", false, "r2"), c.RemoveBroker(ctx, "a", true, ""),
		c.MoveReplica(ctx, 3, "a", "b", "r3"), c.TransferLeader(ctx, 4, "b", ""), c.TransferLeader(ctx, 4, "", ""), c.BalanceLeaders(ctx, ""),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	want := []string{
		"draining a true", "draining a false", "remove a false", "remove a true", "move 3 a b", "transfer 4 b", "transfer 4 ", "balance",
	}
	if diff := cmp.Diff(f.asked, want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
	f.err = &Error{Code: CodeRefused, Retry: RetryFatal, Message: "it still holds something"}
	if err := c.RemoveBroker(ctx, "a", false, ""); !errors.Is(err, &Error{Code: CodeRefused}) {
		t.Errorf("got %v", err)
	}
	f.err = &Error{Code: CodeNoLeader, Retry: RetryAfter, Message: "no majority"}
	if status, _, body := h.request(http.MethodGet, "/v1/cluster", c.Token, ""); status != http.StatusServiceUnavailable || codeOf(t, body) != CodeNoLeader {
		t.Errorf("got %d, %s", status, body)
	}
}

func TestClusterPermissions(t *testing.T) {
	h, _ := newClusterHouse(t)
	alone := newHouse(t)
	for _, tc := range []struct {
		tenant, perm  string
		look, change  int
		lookedAtAlone int
	}{
		{systemTenant, "tenant.manage:*", 200, 204, 404},
		{systemTenant, "tenant.manage:cluster", 200, 204, 404},
		{systemTenant, "stream.manage:*", 200, 403, 404},
		{systemTenant, "stream.manage:stream:felix-system/*", 403, 403, 403},
		{systemTenant, "stream.subscribe:*", 403, 403, 403},
		{"t1", "tenant.manage:*", 403, 403, 403},
	} {
		if got, _, body := h.request(http.MethodGet, "/v1/cluster", h.token(tc.tenant, tc.perm), ""); got != tc.look {
			t.Errorf("%s of %s looks: got %d, %s", tc.perm, tc.tenant, got, body)
		}
		if got, _, body := h.request(http.MethodPost, "/v1/cluster/balance", h.token(tc.tenant, tc.perm), ""); got != tc.change {
			t.Errorf("%s of %s changes: got %d, %s", tc.perm, tc.tenant, got, body)
		}
		if got, _, body := alone.request(http.MethodGet, "/v1/cluster", alone.token(tc.tenant, tc.perm), ""); got != tc.lookedAtAlone {
			t.Errorf("%s of %s looks where there is no cluster: got %d, %s", tc.perm, tc.tenant, got, body)
		}
	}
}

func TestClusterRequestsThatMakeNoSense(t *testing.T) {
	h, f := newClusterHouse(t)
	token := h.token(systemTenant, "tenant.manage:*")
	for _, tc := range []struct {
		method, path, body string
		want               int
	}{
		{http.MethodPost, "/v1/cluster/groups/x/move", `{"from":"a","to":"b"}`, 400},
		{http.MethodPost, "/v1/cluster/groups/1/move", `{"from":"a"}`, 400},
		{http.MethodPost, "/v1/cluster/groups/1/move", "", 400},
		{http.MethodPost, "/v1/cluster/groups/-1/transfer", "{}", 400},
		{http.MethodPost, "/v1/cluster/groups/1/transfer", `{"too":"b"}`, 400},
		{http.MethodDelete, "/v1/cluster/brokers/a?force=perhaps", "", 400},
		{http.MethodPut, "/v1/cluster", "", 405},
		{http.MethodPost, "/v1/cluster/brokers/a", "", 405},
		{http.MethodPost, "/v1/cluster/brokers/a/explode", "", 404},
	} {
		if got, _, body := h.request(tc.method, tc.path, token, tc.body); got != tc.want {
			t.Errorf("%s %s: got %d, %s", tc.method, tc.path, got, body)
		}
	}
	if len(f.asked) > 0 {
		t.Errorf("asked for %q", f.asked)
	}
}
