package auth

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// What a token says about its issuer and the service that it is for.
const (
	Issuer               = "felix-auth"
	AudienceBroker       = "felix-broker"
	AudienceControlPlane = "felix-controlplane"
)

// Claims is what a minted token is to say.
type Claims struct {
	Subject     string    // required
	Tenant      string    // required
	Audience    string    // empty: AudienceBroker
	Permissions []string  // action:resource each; unknown actions are an error
	IssuedAt    time.Time // required
	NotBefore   time.Time // zero: left out
	Expires     time.Time // required, after IssuedAt
	ID          string    // jti; empty: left out
}

// Validate reports every problem of the claims at once.
func (c Claims) Validate() error {
	var errs []error
	if c.Subject == "" {
		errs = append(errs, errors.New("subject is empty"))
	}
	if c.Tenant == "" {
		errs = append(errs, errors.New("tenant is empty"))
	}
	if c.IssuedAt.IsZero() {
		errs = append(errs, errors.New("issued-at is not set"))
	}
	if !c.Expires.After(c.IssuedAt) {
		errs = append(errs, errors.New("expiry is not after issued-at"))
	}
	for _, p := range c.Permissions {
		if err := CheckPermission(p); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Mint signs a token with the claims.
func Mint(key SigningKey, c Claims) (string, error) {
	if err := c.Validate(); err != nil {
		return "", fmt.Errorf("auth: mint token: %w", err)
	}
	if len(key.Private) != ed25519.PrivateKeySize {
		return "", errors.New("auth: mint token: no private key")
	}
	aud := c.Audience
	if aud == "" {
		aud = AudienceBroker
	}
	body := tokenClaims{
		Issuer: Issuer, Audience: aud, Subject: c.Subject, Tenant: c.Tenant,
		ID: c.ID, Permissions: c.Permissions,
		IssuedAt: unix(c.IssuedAt), Expires: unix(c.Expires), NotBefore: unix(c.NotBefore),
	}
	tok := jwt.NewWithClaims(jwt.SigningMethodEdDSA, &body)
	tok.Header["kid"] = key.ID
	signed, err := tok.SignedString(key.Private)
	if err != nil {
		return "", fmt.Errorf("auth: sign token: %w", err)
	}
	return signed, nil
}

func unix(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	s := t.Unix()
	return &s
}
