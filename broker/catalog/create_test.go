package catalog

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCreate(t *testing.T) {
	c := open(t, testConfig(t))
	e := create(t, c, StreamSpec{Name: Name{Tenant: "t1", Stream: "s"}})
	want := Entry{
		Spec:         StreamSpec{Name: name("s"), Shards: 1, Durability: Durable},
		Incarnation:  "01010101010101010101010101010101",
		FirstOffsets: []uint64{0}, CreatedAt: epoch,
	}
	if diff := cmp.Diff(e, want, cmp.AllowUnexported(Entry{})); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

// B88: whoever did not get the answer asks again, and that is success.
func TestCreateCanBeRetried(t *testing.T) {
	cfg := testConfig(t)
	c := open(t, cfg)
	first, created, err := c.Create(spec("s"), "r1")
	if err != nil || !created {
		t.Fatalf("got %v, %v", created, err)
	}
	other := spec("s")
	other.Shards = 2
	for _, tc := range []struct {
		name, request string
		spec          StreamSpec
		want          error
	}{
		{"same request", "r1", spec("s"), nil},
		{"same settings, other request", "r2", spec("s"), nil},
		{"same settings, no request", "", spec("s"), nil},
		{"same request after the settings were changed", "r1", other, nil},
		{"other settings, other request", "r2", other, ErrExists},
		{"other settings, no request", "", other, ErrExists},
	} {
		for _, c := range []*Catalog{c, open(t, cfg)} { // also after a restart
			e, created, err := c.Create(tc.spec, tc.request)
			if !errors.Is(err, tc.want) || created {
				t.Errorf("%s: got %v, %v", tc.name, created, err)
			}
			if err == nil && e.Incarnation != first.Incarnation {
				t.Errorf("%s: another stream", tc.name)
			}
		}
	}
}

func TestNoRequestIsNotTheSameRequest(t *testing.T) {
	c := open(t, testConfig(t))
	create(t, c, spec("s"))
	other := spec("s")
	other.Shards = 2
	if _, _, err := c.Create(other, ""); !errors.Is(err, ErrExists) {
		t.Errorf("got %v", err)
	}
}

func TestCreateRefuses(t *testing.T) {
	cfg := testConfig(t)
	cfg.MaxStreams = 2
	c := open(t, cfg)
	var invalid *InvalidError
	if _, _, err := c.Create(StreamSpec{}, ""); !errors.As(err, &invalid) {
		t.Errorf("got %v", err)
	}
	for i := range 2 {
		create(t, c, spec(fmt.Sprint(i)))
	}
	if _, _, err := c.Create(spec("2"), ""); !errors.Is(err, ErrLimit) {
		t.Errorf("got %v", err)
	}
	if _, created, err := c.Create(spec("1"), ""); err != nil || created {
		t.Errorf("a retry at the limit: %v", err)
	}
}
