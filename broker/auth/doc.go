// Package auth turns a bearer token into a Principal, and a Principal into
// answers to "may it?".
//
// Tokens are JWTs in JWS compact form, signed with Ed25519 and nothing else.
// The public keys belong to a tenant: a token is only ever checked against the
// keys of the tenant it claims, so the key of one tenant can never speak for
// another. Permissions are grants of the form action:resource; there is no
// denial, and what is not understood grants nothing.
//
// The package is not a user database, does not issue tokens over the network
// and keeps no sessions. Minting and key files are here so that a stand-alone
// broker, the command line and tests need no other service.
//
// # Invariants
//
//   - A verified token is remembered no longer than it is valid, and never
//     longer than the key set that verified it is the current one: withdrawing
//     a key takes effect at the next check, not at the token's expiry.
//   - What is remembered is bounded in entries, good and bad tokens apart, so
//     that junk cannot push good tokens out.
//   - Checking a permission takes time linear in the grants of that action and
//     the length of the resource, whatever the patterns look like.
//   - A key file that cannot be read or parsed never takes keys away: the last
//     good set stays in force and the problem is reported.
//
// # Goroutines
//
// The package starts none. Verifier, FileKeys, StaticKeys and Principal may be
// used by any number of goroutines at once; a Verify may read a key file, at
// most once a second and tenant, on the goroutine that asked.
package auth
