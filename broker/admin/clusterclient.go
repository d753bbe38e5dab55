package admin

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
)

// ClusterStatus shows the broker's cluster; the error of a broker that is alone
// has code CodeNotFound.
func (c *Client) ClusterStatus(ctx context.Context) (ClusterStatus, error) {
	var st ClusterStatus
	_, err := c.do(ctx, http.MethodGet, "/v1/cluster", nil, nil, &st)
	return st, err
}

// DrainBroker has a broker give away everything that it holds. ClusterStatus shows
// how far it has come.
func (c *Client) DrainBroker(ctx context.Context, node, requestID string) error {
	return c.changeCluster(ctx, brokerPath(node)+"/drain", ClusterRequest{RequestID: requestID})
}

// UndrainBroker has a broker take part again.
func (c *Client) UndrainBroker(ctx context.Context, node, requestID string) error {
	return c.changeCluster(ctx, brokerPath(node)+"/undrain", ClusterRequest{RequestID: requestID})
}

// RemoveBroker takes a broker that holds nothing out of the cluster, for good.
// Force gives up the shards that only it has.
func (c *Client) RemoveBroker(ctx context.Context, node string, force bool, requestID string) error {
	q := url.Values{}
	if force {
		q.Set("force", "true")
	}
	_, err := c.do(ctx, http.MethodDelete, brokerPath(node), q, ClusterRequest{RequestID: requestID}, nil)
	return err
}

// MoveReplica has a replica of a group go from one broker to another.
func (c *Client) MoveReplica(ctx context.Context, group uint32, from, to, requestID string) error {
	return c.changeCluster(ctx, groupPath(group)+"/move", ClusterRequest{RequestID: requestID, From: from, To: to})
}

// TransferLeader has another broker lead a group; empty: the one that should.
func (c *Client) TransferLeader(ctx context.Context, group uint32, to, requestID string) error {
	return c.changeCluster(ctx, groupPath(group)+"/transfer", ClusterRequest{RequestID: requestID, To: to})
}

// BalanceLeaders has leaders go where they belong, now.
func (c *Client) BalanceLeaders(ctx context.Context, requestID string) error {
	return c.changeCluster(ctx, "/v1/cluster/balance", ClusterRequest{RequestID: requestID})
}

func (c *Client) changeCluster(ctx context.Context, path string, req ClusterRequest) error {
	_, err := c.do(ctx, http.MethodPost, path, nil, req, nil)
	return err
}

func brokerPath(node string) string { return "/v1/cluster/brokers/" + url.PathEscape(node) }

func groupPath(group uint32) string {
	return "/v1/cluster/groups/" + strconv.FormatUint(uint64(group), 10)
}
