package auth

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"
)

var epoch = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func newKey(t *testing.T) SigningKey {
	t.Helper()
	k, err := GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func setOf(t *testing.T, keys ...SigningKey) *KeySet {
	t.Helper()
	pub := make([]Key, len(keys))
	for i, k := range keys {
		pub[i] = k.Public()
	}
	s, err := NewKeySet(pub...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newVerifier(t *testing.T, cfg Config) *Verifier {
	t.Helper()
	if cfg.Now == nil {
		cfg.Now = func() time.Time { return epoch }
	}
	v, err := NewVerifier(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func goodClaims() map[string]any {
	return map[string]any{
		"iss": Issuer, "aud": AudienceBroker, "sub": "alice", "tid": "t1",
		"iat": epoch.Unix(), "exp": epoch.Add(time.Hour).Unix(),
		"perms": []string{"stream.publish:stream:t1/default/*"},
	}
}

// sign makes a token with any claims and headers, also wrong ones.
func sign(t *testing.T, method jwt.SigningMethod, key any, header, claims map[string]any) string {
	t.Helper()
	tok := jwt.NewWithClaims(method, jwt.MapClaims(claims))
	maps.Copy(tok.Header, header)
	s, err := tok.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestVerify(t *testing.T) {
	key, other := newKey(t), newKey(t)
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	v := newVerifier(t, Config{Keys: StaticKeys{"t1": setOf(t, key), "t2": setOf(t, other)}})
	with := func(name string, value any) string {
		c := goodClaims()
		if value == nil {
			delete(c, name)
		} else {
			c[name] = value
		}
		return sign(t, jwt.SigningMethodEdDSA, key.Private, map[string]any{"kid": key.ID}, c)
	}
	header := func(h map[string]any) string {
		return sign(t, jwt.SigningMethodEdDSA, key.Private, h, goodClaims())
	}
	good := header(map[string]any{"kid": key.ID})
	for _, tc := range []struct {
		name, tenant, token string
		want                Reason // empty: accepted
	}{
		{"good", "t1", good, ""},
		{"no kid", "t1", header(nil), ""},
		{"unknown kid", "t1", header(map[string]any{"kid": "x"}), ""},
		{"kid of a wrong type", "t1", header(map[string]any{"kid": 7}), ""},
		{"no perms", "t1", with("perms", nil), ""},
		{"unknown claim", "t1", with("act", map[string]any{"sub": "bob"}), ""},
		{"no iat", "t1", with("iat", nil), ""},
		{"expired within the skew", "t1", with("exp", epoch.Unix()-59), ""},
		{"nbf within the skew", "t1", with("nbf", epoch.Unix()+60), ""},

		{"missing", "t1", "", ReasonMissing},
		{"no token", "t1", "abc", ReasonMalformed},
		{"no json", "t1", "YWJj.YWJj.YWJj", ReasonMalformed},
		{"too long", "t1", strings.Repeat("a", MaxTokenBytes+1), ReasonMalformed},
		{"critical extension", "t1", header(map[string]any{"crit": []string{"b64"}}), ReasonMalformed},
		{"unknown tenant", "t3", good, ReasonUnknownTenant},
		{"another tenant's keys", "t2", good, ReasonSignature},
		{"tid is not the tenant", "t1", with("tid", "t2"), ReasonTenant},
		{"no tid", "t1", with("tid", nil), ReasonTenant},
		{"signed by a stranger", "t1", sign(t, jwt.SigningMethodEdDSA, other.Private, map[string]any{"kid": key.ID}, goodClaims()), ReasonSignature},
		{"signature cut", "t1", good[:len(good)-6], ReasonSignature},
		{"no signature", "t1", good[:strings.LastIndexByte(good, '.')+1], ReasonSignature},
		{"alg none", "t1", sign(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, nil, goodClaims()), ReasonAlgorithm},
		{"alg HS256 with the public key", "t1", sign(t, jwt.SigningMethodHS256, []byte(key.Public().Public), nil, goodClaims()), ReasonAlgorithm},
		{"alg RS256", "t1", sign(t, jwt.SigningMethodRS256, rsaKey, nil, goodClaims()), ReasonAlgorithm},
		{"alg unheard of", "t1", header(map[string]any{"alg": "XX"}), ReasonAlgorithm},
		{"wrong iss", "t1", with("iss", "someone"), ReasonIssuer},
		{"no iss", "t1", with("iss", nil), ReasonMalformed},
		{"control plane token", "t1", with("aud", AudienceControlPlane), ReasonAudience},
		{"aud is a list", "t1", with("aud", []string{AudienceBroker}), ReasonMalformed},
		{"no aud", "t1", with("aud", nil), ReasonMalformed},
		{"no sub", "t1", with("sub", nil), ReasonSubject},
		{"empty sub", "t1", with("sub", ""), ReasonSubject},
		{"no exp", "t1", with("exp", nil), ReasonMalformed},
		{"expired", "t1", with("exp", epoch.Unix()-60), ReasonExpired},
		{"exp is a fraction", "t1", with("exp", 1.5), ReasonMalformed},
		{"exp is text", "t1", with("exp", "tomorrow"), ReasonMalformed},
		{"exp overflows", "t1", with("exp", int64(1)<<62), ReasonMalformed},
		{"exp is negative", "t1", with("exp", -1), ReasonMalformed},
		{"not yet valid", "t1", with("nbf", epoch.Unix()+61), ReasonNotYetValid},
		{"perms is text", "t1", with("perms", "stream.publish:*"), ReasonMalformed},
		{"perms holds a number", "t1", with("perms", []any{1}), ReasonMalformed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for range 2 { // the second answer comes from memory
				p, err := v.Verify(t.Context(), tc.tenant, tc.token)
				if tc.want == "" {
					if err != nil {
						t.Fatal(err)
					}
					if p.Subject != "alice" || p.Tenant != "t1" {
						t.Fatalf("got %+v", p)
					}
					continue
				}
				var refused *Error
				if !errors.As(err, &refused) {
					t.Fatalf("got %v, want a refusal", err)
				}
				if refused.Reason != tc.want {
					t.Fatalf("got %q (%v), want %q", refused.Reason, err, tc.want)
				}
				if tc.token != "" && strings.Contains(err.Error(), tc.token) {
					t.Fatal("error holds the token")
				}
			}
		})
	}
}

func TestVerifyAudiences(t *testing.T) {
	key := newKey(t)
	v := newVerifier(t, Config{
		Keys:      StaticKeys{"t1": setOf(t, key)},
		Audiences: []string{AudienceBroker, AudienceControlPlane},
	})
	for aud, want := range map[string]bool{AudienceBroker: true, AudienceControlPlane: true, "else": false} {
		c := goodClaims()
		c["aud"] = aud
		_, err := v.Verify(t.Context(), "t1", sign(t, jwt.SigningMethodEdDSA, key.Private, nil, c))
		if (err == nil) != want {
			t.Errorf("%s: got %v", aud, err)
		}
	}
}

func TestVerifyBearer(t *testing.T) {
	k1, k2 := newKey(t), newKey(t)
	v := newVerifier(t, Config{Keys: StaticKeys{"t1": setOf(t, k1), "t2": setOf(t, k2)}})
	good := sign(t, jwt.SigningMethodEdDSA, k1.Private, nil, goodClaims())
	if p, err := v.VerifyBearer(t.Context(), good); err != nil || p.Tenant != "t1" {
		t.Fatalf("got %v, %v", p, err)
	}
	// A key of t1 cannot speak for t2 by claiming to.
	c := goodClaims()
	c["tid"] = "t2"
	forged := sign(t, jwt.SigningMethodEdDSA, k1.Private, nil, c)
	for token, want := range map[string]Reason{"": ReasonMissing, "x": ReasonMalformed, forged: ReasonSignature} {
		_, err := v.VerifyBearer(t.Context(), token)
		var refused *Error
		if !errors.As(err, &refused) || refused.Reason != want {
			t.Errorf("%q: got %v, want %s", token, err, want)
		}
	}
}

func TestKidChoosesTheFirstKeyToTry(t *testing.T) {
	a, b, c := newKey(t), newKey(t), newKey(t)
	set := setOf(t, a, b, c)
	for _, tc := range []struct {
		kid  string
		want []SigningKey
	}{
		{b.ID, []SigningKey{b, a, c}},
		{"", []SigningKey{a, b, c}},
		{"unknown", []SigningKey{a, b, c}},
	} {
		want := make([]ed25519.PublicKey, 0, 3)
		for _, k := range tc.want {
			want = append(want, k.Public().Public)
		}
		if diff := cmp.Diff(set.candidates(tc.kid), want); diff != "" {
			t.Errorf("kid %q (-got +want):\n%s", tc.kid, diff)
		}
	}
}

// switchKeys is a source whose set can be replaced and whose uses are counted.
type switchKeys struct {
	set   atomic.Pointer[KeySet]
	calls atomic.Int64
}

func (s *switchKeys) KeySet(string) (*KeySet, error) {
	s.calls.Add(1)
	return s.set.Load(), nil
}

func TestVerifiedTokenIsRememberedUntilItExpires(t *testing.T) {
	key := newKey(t)
	now := epoch
	v := newVerifier(t, Config{Keys: StaticKeys{"t1": setOf(t, key)}, Now: func() time.Time { return now }})
	token := sign(t, jwt.SigningMethodEdDSA, key.Private, nil, goodClaims())
	first, err := v.Verify(t.Context(), "t1", token)
	if err != nil {
		t.Fatal(err)
	}
	now = epoch.Add(time.Hour + 59*time.Second)
	again, err := v.Verify(t.Context(), "t1", token)
	if err != nil {
		t.Fatal(err)
	}
	if first != again {
		t.Error("verified a second time")
	}
	now = epoch.Add(time.Hour + 60*time.Second)
	var refused *Error
	if _, err := v.Verify(t.Context(), "t1", token); !errors.As(err, &refused) || refused.Reason != ReasonExpired {
		t.Fatalf("got %v, want expired", err)
	}
}

func TestWithdrawnKeyTakesEffectAtOnce(t *testing.T) {
	old, fresh := newKey(t), newKey(t)
	var keys switchKeys
	keys.set.Store(setOf(t, old, fresh))
	v := newVerifier(t, Config{Keys: &keys})
	token := sign(t, jwt.SigningMethodEdDSA, old.Private, nil, goodClaims())
	if _, err := v.Verify(t.Context(), "t1", token); err != nil {
		t.Fatal(err)
	}
	keys.set.Store(setOf(t, fresh))
	if _, err := v.Verify(t.Context(), "t1", token); err == nil {
		t.Fatal("token of a withdrawn key accepted")
	}
	// And the refusal is forgotten as fast when the key is back.
	keys.set.Store(setOf(t, old))
	if _, err := v.Verify(t.Context(), "t1", token); err != nil {
		t.Fatal(err)
	}
}

func TestRefusalIsRememberedBriefly(t *testing.T) {
	key := newKey(t)
	now := epoch
	v := newVerifier(t, Config{
		Keys: StaticKeys{"t1": setOf(t, key)}, Now: func() time.Time { return now }, Skew: -1, RefusedFor: time.Second,
	})
	c := goodClaims()
	c["nbf"] = epoch.Add(100*time.Millisecond).Unix() + 1
	token := sign(t, jwt.SigningMethodEdDSA, key.Private, nil, c)
	_, first := v.Verify(t.Context(), "t1", token)
	_, second := v.Verify(t.Context(), "t1", token)
	if first == nil || !errors.Is(second, first) {
		t.Fatalf("got %v, then %v", first, second)
	}
	now = now.Add(time.Second)
	if _, err := v.Verify(t.Context(), "t1", token); err != nil {
		t.Fatal(err)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	key := newKey(t)
	v := newVerifier(t, Config{Keys: StaticKeys{"t1": setOf(t, key)}, CacheSize: 3, RefusedCacheSize: 5})
	good := sign(t, jwt.SigningMethodEdDSA, key.Private, nil, goodClaims())
	p, err := v.Verify(t.Context(), "t1", good)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		if _, err := v.Verify(t.Context(), "t1", fmt.Sprintf("junk.%d.x", i)); err == nil {
			t.Fatal("junk accepted")
		}
	}
	if got := v.refused.len(); got != 5 {
		t.Errorf("got %d refused tokens in memory, want 5", got)
	}
	if again, _ := v.Verify(t.Context(), "t1", good); again != p {
		t.Error("junk pushed a good token out")
	}
	for i := range 10 {
		c := goodClaims()
		c["jti"] = fmt.Sprint(i)
		if _, err := v.Verify(t.Context(), "t1", sign(t, jwt.SigningMethodEdDSA, key.Private, nil, c)); err != nil {
			t.Fatal(err)
		}
	}
	if got := v.good.len(); got != 3 {
		t.Errorf("got %d good tokens in memory, want 3", got)
	}
	listed := 0
	for e := v.good.newest; e != nil; e = e.older {
		listed++
	}
	if listed != 3 {
		t.Errorf("got %d list entries, want 3", listed)
	}
}

func TestVerifyConcurrently(t *testing.T) {
	key := newKey(t)
	// Whoever comes finds the verification under way or its result, nothing in
	// between: one principal for all.
	const n = 50
	v := newVerifier(t, Config{Keys: StaticKeys{"t1": setOf(t, key)}})
	token := sign(t, jwt.SigningMethodEdDSA, key.Private, nil, goodClaims())
	got := make([]*Principal, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			p, err := v.Verify(context.Background(), "t1", token)
			if err != nil {
				t.Error(err)
			}
			got[i] = p
		})
	}
	wg.Wait()
	for _, p := range got {
		if p != got[0] {
			t.Fatal("same token verified twice")
		}
	}
}

func TestWaitingForAnotherVerificationEndsWithTheContext(t *testing.T) {
	key := newKey(t)
	set := setOf(t, key)
	v := newVerifier(t, Config{Keys: StaticKeys{"t1": set}})
	token := sign(t, jwt.SigningMethodEdDSA, key.Private, nil, goodClaims())
	// A verification that never ends.
	v.flights[flightKey{token: keyOf("t1", token), set: set}] = &inFlight{done: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	errs := make(chan error, 1)
	go func() {
		_, err := v.Verify(ctx, "t1", token)
		errs <- err
	}()
	cancel()
	if err := <-errs; !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	if _, err := v.Verify(ctx, "t1", "other"); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
}

func TestConfigValidate(t *testing.T) {
	if _, err := NewVerifier(Config{Audiences: []string{""}, RefusedFor: -1}); err == nil {
		t.Fatal("accepted")
	} else if got := strings.Count(err.Error(), "\n") + 1; got != 3 {
		t.Errorf("got %d problems, want 3: %v", got, err)
	}
}

func TestCacheKeySeparatesTenantAndToken(t *testing.T) {
	if keyOf("a", "bc") == keyOf("ab", "c") {
		t.Error("tenant and token run into each other")
	}
}

func TestReasonsAreComplete(t *testing.T) {
	seen := map[Reason]bool{}
	for _, r := range Reasons() {
		if seen[r] {
			t.Errorf("%s listed twice", r)
		}
		seen[r] = true
	}
	if len(seen) != 11 {
		t.Errorf("got %d reasons", len(seen))
	}
}

func FuzzVerify(f *testing.F) {
	key, err := GenerateKey(nil)
	if err != nil {
		f.Fatal(err)
	}
	set, err := NewKeySet(key.Public())
	if err != nil {
		f.Fatal(err)
	}
	v, err := NewVerifier(Config{Keys: StaticKeys{"t1": set}, Now: func() time.Time { return epoch }})
	if err != nil {
		f.Fatal(err)
	}
	seg := func(x any) string {
		b, _ := json.Marshal(x)
		return base64.RawURLEncoding.EncodeToString(b)
	}
	f.Add(seg(map[string]any{"alg": "EdDSA"}) + "." + seg(goodClaims()) + ".AAAA")
	f.Add("..")
	f.Add("bnVsbA.bnVsbA.")
	f.Fuzz(func(t *testing.T, token string) {
		if _, err := v.Verify(t.Context(), "t1", token); err == nil {
			t.Fatal("accepted")
		}
		if _, err := v.VerifyBearer(t.Context(), token); err == nil {
			t.Fatal("accepted")
		}
	})
}
