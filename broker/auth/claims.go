package auth

import (
	"errors"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// tokenClaims is the token's body. Its types are strict on purpose: aud is one
// string and times are whole seconds, and anything else does not parse.
type tokenClaims struct {
	Issuer      string   `json:"iss"`
	Audience    string   `json:"aud"`
	Subject     string   `json:"sub"`
	Tenant      string   `json:"tid"`
	ID          string   `json:"jti,omitempty"`
	IssuedAt    *int64   `json:"iat,omitempty"`
	NotBefore   *int64   `json:"nbf,omitempty"`
	Expires     *int64   `json:"exp,omitempty"`
	Permissions []string `json:"perms"`

	// wantTenant is not part of the token: the tenant that it is checked for.
	wantTenant string
}

var (
	errCritical    = errors.New("crit header is not supported")
	errNoSubject   = errors.New("sub is empty")
	errOtherTenant = errors.New("tid is not the tenant that was asked for")
)

// maxUnix is the end of the year 9999. Times beyond it are refused rather than
// left to overflow.
const maxUnix = 253402300799

func numericDate(name string, s *int64) (*jwt.NumericDate, error) {
	if s == nil {
		return nil, nil //nolint:nilnil // the jwt package reads nil as "claim absent"
	}
	if *s < 0 || *s > maxUnix {
		return nil, fmt.Errorf("%s is out of range", name)
	}
	return jwt.NewNumericDate(time.Unix(*s, 0)), nil
}

// GetExpirationTime implements jwt.Claims.
func (c *tokenClaims) GetExpirationTime() (*jwt.NumericDate, error) {
	return numericDate("exp", c.Expires)
}

// GetIssuedAt implements jwt.Claims.
func (c *tokenClaims) GetIssuedAt() (*jwt.NumericDate, error) { return numericDate("iat", c.IssuedAt) }

// GetNotBefore implements jwt.Claims.
func (c *tokenClaims) GetNotBefore() (*jwt.NumericDate, error) {
	return numericDate("nbf", c.NotBefore)
}

// GetIssuer implements jwt.Claims.
func (c *tokenClaims) GetIssuer() (string, error) { return c.Issuer, nil }

// GetSubject implements jwt.Claims.
func (c *tokenClaims) GetSubject() (string, error) { return c.Subject, nil }

// GetAudience implements jwt.Claims.
func (c *tokenClaims) GetAudience() (jwt.ClaimStrings, error) {
	return jwt.ClaimStrings{c.Audience}, nil
}

// Validate implements jwt.ClaimsValidator: the checks that the jwt package does
// not have. It runs after the signature was found good.
func (c *tokenClaims) Validate() error {
	if c.Subject == "" {
		return errNoSubject
	}
	if c.Tenant != c.wantTenant {
		return errOtherTenant
	}
	return nil
}
