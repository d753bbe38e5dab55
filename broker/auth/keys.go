package auth

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
)

// MaxKeys bounds a key set, because a token with a bad signature costs one
// check for each key.
const MaxKeys = 64

// Key is a public key that tokens of a tenant may be signed with.
type Key struct {
	ID     string // kid; may be empty, then it is only found by trying
	Public ed25519.PublicKey
}

// KeySet is an immutable list of keys. Its address is its version: a source
// hands out the same pointer for as long as nothing has changed.
type KeySet struct {
	keys []Key
}

// NewKeySet checks the keys and makes a set of them.
func NewKeySet(keys ...Key) (*KeySet, error) {
	if len(keys) == 0 {
		return nil, errors.New("key set is empty")
	}
	if len(keys) > MaxKeys {
		return nil, fmt.Errorf("key set has %d keys, more than the %d allowed", len(keys), MaxKeys)
	}
	for i, k := range keys {
		if len(k.Public) != ed25519.PublicKeySize {
			return nil, fmt.Errorf("key %d (%q): public key has %d bytes, want %d", i, k.ID, len(k.Public), ed25519.PublicKeySize)
		}
	}
	return &KeySet{keys: slices.Clone(keys)}, nil
}

// Keys returns a copy of the set's keys.
func (s *KeySet) Keys() []Key { return slices.Clone(s.keys) }

// candidates returns the public keys in the order in which to try them: those
// named by kid first.
func (s *KeySet) candidates(kid string) []ed25519.PublicKey {
	out := make([]ed25519.PublicKey, 0, len(s.keys))
	for _, named := range []bool{true, false} {
		for _, k := range s.keys {
			if (kid != "" && k.ID == kid) == named {
				out = append(out, k.Public)
			}
		}
	}
	return out
}

// KeySource finds the current keys of a tenant. KeySet must be cheap: it is
// called for every verification, also for those answered from memory. An
// unknown tenant is ErrUnknownTenant.
type KeySource interface {
	KeySet(tenant string) (*KeySet, error)
}

// StaticKeys is a KeySource that never changes: tenant to key set.
type StaticKeys map[string]*KeySet

// KeySet returns the tenant's keys or ErrUnknownTenant.
func (s StaticKeys) KeySet(tenant string) (*KeySet, error) {
	if set := s[tenant]; set != nil {
		return set, nil
	}
	return nil, ErrUnknownTenant
}
