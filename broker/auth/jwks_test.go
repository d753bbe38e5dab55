package auth

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The example key of RFC 8037, appendix A.2 and A.3.
const (
	rfcX          = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"
	rfcThumbprint = "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"
)

func TestParseJWKS(t *testing.T) {
	const good = `{"kty":"OKP","crv":"Ed25519","alg":"EdDSA","use":"sig","kid":"a","x":"` + rfcX + `"}`
	for _, tc := range []struct {
		name, doc string
		want      []string // kids
		wantErr   string
	}{
		{"one", `{"keys":[` + good + `]}`, []string{"a"}, ""},
		{"only what is needed", `{"keys":[{"kty":"OKP","crv":"Ed25519","x":"` + rfcX + `"}]}`, []string{""}, ""},
		{"others are skipped", `{"keys":[{"kty":"RSA","kid":"r","n":"x","e":"AQAB"},{"kty":"OKP","crv":"X25519","x":"AA"},{"kty":"OKP","crv":"Ed25519","use":"enc","x":"AA"},` + good + `]}`, []string{"a"}, ""},
		{"unknown fields", `{"v":1,"keys":[{"x5t":"q",` + good[1:] + `]}`, []string{"a"}, ""},
		{"empty", `{"keys":[]}`, nil, "no Ed25519"},
		{"nothing usable", `{"keys":[{"kty":"RSA"}]}`, nil, "no Ed25519"},
		{"cut", `{"keys":[`, nil, "jwks"},
		{"null", `null`, nil, "no Ed25519"},
		{"private", `{"keys":[{"d":"AA",` + good[1:] + `]}`, nil, "private"},
		{"bad base64", `{"keys":[{"kty":"OKP","crv":"Ed25519","x":"a+b"}]}`, nil, "x:"},
		{"short x", `{"keys":[{"kty":"OKP","crv":"Ed25519","x":"AA"}]}`, nil, "32"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			set, err := ParseJWKS([]byte(tc.doc))
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Fatalf("got %v, want %q in it", err, tc.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var kids []string
			for _, k := range set.Keys() {
				kids = append(kids, k.ID)
			}
			if diff := cmp.Diff(kids, tc.want); diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
			if got := thumbprint(set.Keys()[0].Public); got != rfcThumbprint {
				t.Errorf("thumbprint: got %s, want %s", got, rfcThumbprint)
			}
		})
	}
}

func TestJWKSRoundTrip(t *testing.T) {
	set := setOf(t, newKey(t), newKey(t))
	data, err := set.JWKS()
	if err != nil {
		t.Fatal(err)
	}
	back, err := ParseJWKS(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(back.Keys(), set.Keys()); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

func FuzzParseJWKS(f *testing.F) {
	f.Add([]byte(`{"keys":[{"kty":"OKP","crv":"Ed25519","x":"` + rfcX + `"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if set, err := ParseJWKS(data); err == nil && len(set.Keys()) == 0 {
			t.Fatal("empty set")
		}
	})
}
