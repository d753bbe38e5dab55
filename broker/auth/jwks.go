package auth

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
)

// jwk is one key of a JWK set, as far as an Ed25519 public key needs it.
type jwk struct {
	Type      string `json:"kty"`
	Curve     string `json:"crv,omitempty"`
	Algorithm string `json:"alg,omitempty"`
	Use       string `json:"use,omitempty"`
	ID        string `json:"kid,omitempty"`
	X         string `json:"x,omitempty"`
	Private   string `json:"d,omitempty"`
}

type jwks struct {
	Keys []jwk `json:"keys"`
}

// ParseJWKS reads a JWK set. Keys of other types, curves or uses are skipped,
// as the standard asks; a set without one usable key is an error, and so is a
// private key, which has no business in a file that is handed around.
func ParseJWKS(data []byte) (*KeySet, error) {
	var doc jwks
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("jwks: %w", err)
	}
	keys := make([]Key, 0, len(doc.Keys))
	for i, k := range doc.Keys {
		if k.Private != "" {
			return nil, fmt.Errorf("jwks: key %d (%q) is a private key", i, k.ID)
		}
		if !k.usable() {
			continue
		}
		x, err := base64.RawURLEncoding.DecodeString(k.X)
		if err != nil {
			return nil, fmt.Errorf("jwks: key %d (%q): x: %w", i, k.ID, err)
		}
		keys = append(keys, Key{ID: k.ID, Public: x})
	}
	if len(keys) == 0 {
		return nil, errors.New("jwks: no Ed25519 signature key in the set")
	}
	set, err := NewKeySet(keys...)
	if err != nil {
		return nil, fmt.Errorf("jwks: %w", err)
	}
	return set, nil
}

func (k jwk) usable() bool {
	return k.Type == "OKP" && k.Curve == "Ed25519" &&
		(k.Use == "" || k.Use == "sig") &&
		(k.Algorithm == "" || k.Algorithm == "EdDSA" || k.Algorithm == "Ed25519")
}

// JWKS writes the set as a JWK set document.
func (s *KeySet) JWKS() ([]byte, error) {
	doc := jwks{Keys: make([]jwk, len(s.keys))}
	for i, k := range s.keys {
		doc.Keys[i] = jwk{
			Type: "OKP", Curve: "Ed25519", Algorithm: "EdDSA", Use: "sig", ID: k.ID,
			X: base64.RawURLEncoding.EncodeToString(k.Public),
		}
	}
	data, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("jwks: %w", err)
	}
	return append(data, '\n'), nil
}

// thumbprint is the RFC 7638 thumbprint of a public key: the same key has the
// same id wherever it is loaded.
func thumbprint(pub ed25519.PublicKey) string {
	sum := sha256.Sum256([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + base64.RawURLEncoding.EncodeToString(pub) + `"}`))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
