package client

import (
	"context"
	"errors"
)

// Client is a connection to a broker or a cluster of them. All methods are safe for concurrent use.
type Client struct {
	cfg Config
}

// Dial connects and authenticates. It tries the addresses in order and fails with a *ConnectError if none can be
// reached, or with an *Error if a broker refuses the token.
func Dial(ctx context.Context, cfg Config) (*Client, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return nil, errors.ErrUnsupported
}

// Close ends all subscriptions and publishers, closes the connections and waits for everything that the client has
// started. Publishes without an answer fail; call Publisher.Close first to have them answered.
func (c *Client) Close() error { return errors.ErrUnsupported }

// Publish sends one record and waits for the answer. Calls at the same time share batches.
func (c *Client) Publish(ctx context.Context, s Stream, m Message) (Receipt, error) {
	return Receipt{}, errors.ErrUnsupported
}

// Shards asks how many shards a stream has and how its keys are spread over them.
func (c *Client) Shards(ctx context.Context, s Stream) (Shards, error) {
	return Shards{}, errors.ErrUnsupported
}

// Topology asks a cluster for its brokers. A stand-alone broker answers with an *UnsupportedError.
func (c *Client) Topology(ctx context.Context) ([]Broker, error) { return nil, errors.ErrUnsupported }

// ShardOwners asks which brokers lead the shards of a stream.
func (c *Client) ShardOwners(ctx context.Context, s Stream) ([]ShardOwner, error) {
	return nil, errors.ErrUnsupported
}
