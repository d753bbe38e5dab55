package admin

import (
	"context"

	"felix.dev/felix/broker/auth"
)

// StreamReader shows streams.
type StreamReader interface {
	// Stream returns one stream; the error of one that is not there has code
	// CodeNotFound, or is catalog.ErrNotFound.
	Stream(ctx context.Context, name Name) (Stream, error)
	// Streams returns all streams, ordered by tenant, namespace and name.
	Streams(ctx context.Context) ([]Stream, error)
}

// StreamWriter creates, changes and removes streams. An error may be an *Error,
// one of package catalog, or anything else, which is reported as internal.
type StreamWriter interface {
	// CreateStream makes a stream, or finds that the same request or the same
	// settings have made it already.
	CreateStream(ctx context.Context, spec StreamSpec, requestID string) (s Stream, created bool, err error)
	UpdateStream(ctx context.Context, name Name, change StreamChange) (Stream, error)
	DeleteStream(ctx context.Context, name Name) error
}

// Streams is the broker's streams.
type Streams interface {
	StreamReader
	StreamWriter
}

// Subscriptions is the broker's readers.
type Subscriptions interface {
	// Subscriptions returns the readers of a stream, or of all streams for the
	// zero Name, in any order.
	Subscriptions(ctx context.Context, of Name) ([]Subscription, error)
	// Subscription returns one reader; the error of one that is not there has
	// code CodeNotFound.
	Subscription(ctx context.Context, id uint64) (Subscription, error)
	// EndSubscription ends one reader and nothing else of its connection.
	EndSubscription(ctx context.Context, id uint64) error
}

// Principal is who calls.
type Principal interface {
	// ID names the caller in logs.
	ID() string
	// Allows reports whether the caller may do something with a stream.
	Allows(action auth.Action, stream Name) bool
}

// Authorizer turns a bearer token into who calls. A refusal is an *auth.Error;
// any other error means that it could not be found out.
type Authorizer interface {
	Authorize(ctx context.Context, token string) (Principal, error)
}
