package auth

import (
	"strings"
	"testing"
	"time"
)

func TestMintAndVerify(t *testing.T) {
	key := newKey(t)
	token, err := Mint(key, Claims{
		Subject: "alice", Tenant: "t1", ID: "7",
		Permissions: []string{"stream.publish:stream:t1/default/*"},
		IssuedAt:    epoch, NotBefore: epoch, Expires: epoch.Add(time.Hour),
	})
	if err != nil {
		t.Fatal(err)
	}
	v := newVerifier(t, Config{Keys: StaticKeys{"t1": setOf(t, newKey(t), key)}})
	p, err := v.Verify(t.Context(), "t1", token)
	if err != nil {
		t.Fatal(err)
	}
	if !p.AllowsStream(StreamPublish, "t1", "default", "orders") || !p.Expires.Equal(epoch.Add(time.Hour)) {
		t.Errorf("got %+v", p)
	}
}

func TestMintRefuses(t *testing.T) {
	_, err := Mint(newKey(t), Claims{Permissions: []string{"stream.fly:x", "y"}})
	if err == nil {
		t.Fatal("minted")
	}
	if _, err := Mint(SigningKey{}, Claims{Subject: "a", Tenant: "t", IssuedAt: epoch, Expires: epoch.Add(1)}); err == nil {
		t.Error("minted without a key")
	}
	for _, part := range []string{"subject", "tenant", "issued-at", "expiry", "stream.fly", `"y"`} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %v", part, err)
		}
	}
}
