package auth

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
)

// SigningKey signs tokens. Its ID goes into the token's header as kid.
type SigningKey struct {
	ID      string
	Private ed25519.PrivateKey
}

// GenerateKey makes a new key. A nil random is the system's secure source; its
// ID is the RFC 7638 thumbprint of the public key.
func GenerateKey(random io.Reader) (SigningKey, error) {
	pub, priv, err := ed25519.GenerateKey(random)
	if err != nil {
		return SigningKey{}, fmt.Errorf("auth: generate key: %w", err)
	}
	return SigningKey{ID: thumbprint(pub), Private: priv}, nil
}

// Public is the key that verifies what k signs.
func (k SigningKey) Public() Key {
	pub, _ := k.Private.Public().(ed25519.PublicKey) // it always is one
	return Key{ID: k.ID, Public: pub}
}

const pemType = "PRIVATE KEY"

// marshalPEM encodes the private key as PKCS #8 in PEM.
func (k SigningKey) marshalPEM() ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(k.Private)
	if err != nil {
		return nil, fmt.Errorf("auth: encode key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: der}), nil
}

// parsePEM decodes what marshalPEM wrote. The key's ID is its thumbprint.
func parsePEM(data []byte) (SigningKey, error) {
	block, _ := pem.Decode(data)
	if block == nil || block.Type != pemType {
		return SigningKey{}, errors.New("auth: no PKCS #8 private key in the PEM data")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return SigningKey{}, fmt.Errorf("auth: decode key: %w", err)
	}
	priv, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return SigningKey{}, fmt.Errorf("auth: key is %T, want Ed25519", parsed)
	}
	k := SigningKey{Private: priv}
	k.ID = thumbprint(k.Public().Public)
	return k, nil
}
