// Package admin is the broker's HTTP side: liveness, readiness, metrics, and the
// calls that create, change and remove streams, show who is slow, and look after
// the cluster. Client is
// the typed client of it; the command line and the operator use it, so that
// nobody needs to reach into a broker.
//
// It holds no state of its own and does none of the work: Streams and
// Subscriptions are interfaces that the broker's assembly implements. It is not
// the data path; records never pass through it.
//
// /healthz, /readyz and /metrics are open. Everything under /v1 needs a bearer
// token: reading a stream needs stream.subscribe or stream.manage on it,
// changing it and looking at its subscriptions needs stream.manage. Lists hold
// what the caller may see. The cluster is the business of the system's tenant:
// looking at it needs stream.manage or tenant.manage on "cluster", changing it
// tenant.manage.
//
// # Invariants
//
//   - Whether the caller may do something is decided before it is looked at
//     whether the thing exists, so that an answer does not tell.
//   - Every error is an Error in JSON, with a code, whether a retry helps, and no
//     inside of the broker that the caller has no use for.
//   - Creating a stream can be retried with the same request id, and deleting or
//     ending what is gone answers not_found, which a retry may read as success.
//   - Bodies, headers, connections and times are bounded before anything is
//     authenticated.
//
// # Goroutines
//
// Serve runs until its context ends and waits for the requests under way.
// Handlers run on net/http's goroutines; the interfaces are called concurrently.
// A Client may be used from any goroutine.
package admin
