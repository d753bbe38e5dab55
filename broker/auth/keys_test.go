package auth

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNewKeySet(t *testing.T) {
	k := newKey(t).Public()
	many := make([]Key, MaxKeys+1)
	for i := range many {
		many[i] = k
	}
	for _, tc := range []struct {
		name string
		keys []Key
		want string // part of the error
	}{
		{"one", []Key{k}, ""},
		{"as many as allowed", many[:MaxKeys], ""},
		{"none", nil, "empty"},
		{"too many", many, "more than"},
		{"short key", []Key{k, {ID: "x", Public: k.Public[:31]}}, `key 1 ("x")`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := NewKeySet(tc.keys...)
			switch {
			case tc.want == "" && err != nil:
				t.Fatal(err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Fatalf("got %v, want %q in it", err, tc.want)
			}
		})
	}
}

func TestKeySetIsImmutable(t *testing.T) {
	in := []Key{newKey(t).Public()}
	set, err := NewKeySet(in...)
	if err != nil {
		t.Fatal(err)
	}
	want := in[0].ID
	in[0].ID = "changed"
	out := set.Keys()
	if out[0].ID != want {
		t.Error("set shares its list with the caller")
	}
	out[0].ID = "changed"
	if diff := cmp.Diff(set.Keys()[0].ID, want); diff != "" {
		t.Error(diff)
	}
}
