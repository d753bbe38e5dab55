package cli

import (
	"errors"
	"testing"

	"felix.dev/felix/client"
)

func TestParseStream(t *testing.T) {
	for in, want := range map[string]client.Stream{
		"orders":         {Namespace: "default", Name: "orders"},
		"shop/orders":    {Namespace: "shop", Name: "orders"},
		"default/orders": {Namespace: "default", Name: "orders"},
	} {
		got, err := parseStream(in)
		if err != nil || got != want {
			t.Errorf("%q: got %v, %v, want %v", in, got, err, want)
		}
		if again, err := parseStream(showStream(got.Namespace, got.Name)); err != nil || again != got {
			t.Errorf("%q: shown as %q, which is %v, %v", in, showStream(got.Namespace, got.Name), again, err)
		}
	}
	for _, in := range []string{"", "/", "a/", "/b", "a/b/c", "a*", "a:b", "x:y/z"} {
		var usage *usageError
		if got, err := parseStream(in); !errors.As(err, &usage) {
			t.Errorf("%q: got %v, %v, want a usage error", in, got, err)
		}
	}
}
