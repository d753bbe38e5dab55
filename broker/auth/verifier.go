package auth

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// MaxTokenBytes is the longest token that is looked at.
const MaxTokenBytes = 64 << 10

// Config configures a Verifier. The zero value of each field but Keys is usable.
type Config struct {
	// Keys finds the keys of a tenant. Required.
	Keys KeySource
	// Audiences are the accepted values of aud. Empty: AudienceBroker.
	Audiences []string
	// Skew is how far clocks may differ. 0: 60 s. Negative: none.
	Skew time.Duration
	// CacheSize bounds how many good tokens are remembered. 0: 4096. Negative:
	// none are.
	CacheSize int
	// RefusedCacheSize bounds how many refused tokens are remembered. 0: 1024.
	// Negative: none are.
	RefusedCacheSize int
	// RefusedFor is how long a refused token is remembered. 0: 2 s.
	RefusedFor time.Duration
	// Now is the clock. Nil: time.Now.
	Now func() time.Time
}

// Validate reports every problem of the configuration at once.
func (c Config) Validate() error {
	var errs []error
	if c.Keys == nil {
		errs = append(errs, errors.New("auth: no key source"))
	}
	for _, a := range c.Audiences {
		if a == "" {
			errs = append(errs, errors.New("auth: empty audience"))
		}
	}
	if c.RefusedFor < 0 {
		errs = append(errs, errors.New("auth: refused tokens cannot be remembered for a negative time"))
	}
	return errors.Join(errs...)
}

func (c Config) withDefaults() Config {
	if len(c.Audiences) == 0 {
		c.Audiences = []string{AudienceBroker}
	}
	c.Skew = orDefault(c.Skew, 60*time.Second)
	c.CacheSize = orDefault(c.CacheSize, 4096)
	c.RefusedCacheSize = orDefault(c.RefusedCacheSize, 1024)
	if c.RefusedFor == 0 {
		c.RefusedFor = 2 * time.Second
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// orDefault reads 0 as def and a negative number as 0.
func orDefault[T int | time.Duration](v, def T) T {
	if v == 0 {
		return def
	}
	return max(v, 0)
}

// Verifier checks tokens. Safe for concurrent use.
type Verifier struct {
	cfg    Config
	parser *jwt.Parser

	mu      sync.Mutex
	good    *lru                    // guarded by mu
	refused *lru                    // guarded by mu
	flights map[flightKey]*inFlight // guarded by mu; verifications under way
}

type flightKey struct {
	token cacheKey
	set   *KeySet
}

type inFlight struct {
	done chan struct{} // closed when out is set
	out  outcome
}

// NewVerifier checks the configuration and makes a Verifier of it.
func NewVerifier(cfg Config) (*Verifier, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	return &Verifier{
		cfg: cfg,
		parser: jwt.NewParser(
			jwt.WithValidMethods([]string{jwt.SigningMethodEdDSA.Alg()}),
			jwt.WithStrictDecoding(),
			jwt.WithIssuer(Issuer),
			jwt.WithAudience(cfg.Audiences...),
			jwt.WithExpirationRequired(),
			jwt.WithLeeway(cfg.Skew),
			jwt.WithTimeFunc(cfg.Now),
		),
		good:    newLRU(cfg.CacheSize),
		refused: newLRU(cfg.RefusedCacheSize),
		flights: make(map[flightKey]*inFlight),
	}, nil
}

// Verify checks a token that somebody presents for a tenant. A refusal is an
// *Error; the only other error is the context's. Calls with the same token at
// the same time are one verification.
func (v *Verifier) Verify(ctx context.Context, tenant, token string) (*Principal, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	switch {
	case token == "":
		return nil, refuse(ReasonMissing, nil)
	case len(token) > MaxTokenBytes:
		return nil, refuse(ReasonMalformed, fmt.Errorf("longer than %d bytes", MaxTokenBytes))
	}
	set, err := v.cfg.Keys.KeySet(tenant)
	if err != nil {
		return nil, refuse(ReasonUnknownTenant, err)
	}
	out, err := v.recall(ctx, tenant, token, set)
	if err != nil {
		return nil, err
	}
	if out.refusal != nil {
		return nil, out.refusal
	}
	return out.principal, nil
}

// VerifyBearer checks a token that comes without a tenant, as in an HTTP
// header: the token's own tid chooses the keys, and is then verified with them.
func (v *Verifier) VerifyBearer(ctx context.Context, token string) (*Principal, error) {
	switch {
	case token == "":
		return nil, refuse(ReasonMissing, nil)
	case len(token) > MaxTokenBytes:
		return nil, refuse(ReasonMalformed, fmt.Errorf("longer than %d bytes", MaxTokenBytes))
	}
	var c tokenClaims
	if _, _, err := v.parser.ParseUnverified(token, &c); err != nil {
		return nil, classify(err)
	}
	return v.Verify(ctx, c.Tenant, token)
}

// recall answers from memory, joins a verification that is under way, or does
// it.
func (v *Verifier) recall(ctx context.Context, tenant, token string, set *KeySet) (outcome, error) {
	key := keyOf(tenant, token)
	flight := flightKey{token: key, set: set}

	v.mu.Lock()
	now := v.cfg.Now()
	for _, c := range []*lru{v.good, v.refused} {
		if out, ok := c.get(key, set, now); ok {
			v.mu.Unlock()
			return out, nil
		}
	}
	if f, ok := v.flights[flight]; ok {
		v.mu.Unlock()
		select {
		case <-f.done:
			return f.out, nil
		case <-ctx.Done():
			return outcome{}, ctx.Err()
		}
	}
	f := &inFlight{done: make(chan struct{})}
	v.flights[flight] = f
	v.mu.Unlock()

	f.out = v.check(tenant, token, set)

	v.mu.Lock()
	if f.out.refusal != nil {
		v.refused.put(key, f.out)
	} else {
		v.good.put(key, f.out)
	}
	delete(v.flights, flight)
	v.mu.Unlock()
	close(f.done)
	return f.out, nil
}

// check does the work of a verification: it uses no memory and takes no lock.
func (v *Verifier) check(tenant, token string, set *KeySet) outcome {
	c := tokenClaims{wantTenant: tenant}
	_, err := v.parser.ParseWithClaims(token, &c, func(t *jwt.Token) (any, error) {
		// Extensions that must be understood are not: there are none here.
		if _, ok := t.Header["crit"]; ok {
			return nil, errCritical
		}
		kid, _ := t.Header["kid"].(string)
		var keys jwt.VerificationKeySet
		for _, k := range set.candidates(kid) {
			keys.Keys = append(keys.Keys, k)
		}
		return keys, nil
	})
	if err != nil {
		return outcome{refusal: classify(err), set: set, until: v.cfg.Now().Add(v.cfg.RefusedFor)}
	}
	exp := time.Unix(*c.Expires, 0)
	p := &Principal{Subject: c.Subject, Tenant: c.Tenant, Expires: exp, grants: compile(c.Permissions)}
	// Remembered exactly as long as a fresh check would still say yes.
	return outcome{principal: p, set: set, until: exp.Add(v.cfg.Skew)}
}

// classify finds the reason in an error of the jwt package. The signature comes
// first: what an unsigned token says of itself is not worth reporting.
func classify(err error) *Error {
	for _, m := range []struct {
		target error
		reason Reason
	}{
		{errCritical, ReasonMalformed},
		{errNoSubject, ReasonSubject},
		{errOtherTenant, ReasonTenant},
		{jwt.ErrEd25519Verification, ReasonSignature},
		{jwt.ErrTokenSignatureInvalid, ReasonAlgorithm},
		{jwt.ErrTokenUnverifiable, ReasonAlgorithm},
		{jwt.ErrTokenInvalidIssuer, ReasonIssuer},
		{jwt.ErrTokenInvalidAudience, ReasonAudience},
		{jwt.ErrTokenExpired, ReasonExpired},
		{jwt.ErrTokenNotValidYet, ReasonNotYetValid},
	} {
		if errors.Is(err, m.target) {
			return refuse(m.reason, err)
		}
	}
	return refuse(ReasonMalformed, err)
}
