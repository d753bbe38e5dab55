package cli

import "testing"

func TestSize(t *testing.T) {
	for in, want := range map[string]int64{
		"0": 0, "65536": 65536, "64KiB": 64 << 10, "64k": 64 << 10, "1.5GiB": 3 << 29, "10 MB": 10e6, "7b": 7,
	} {
		var s size
		if err := s.Set(in); err != nil || s.bytes != want {
			t.Errorf("%q: got %d, %v, want %d", in, s.bytes, err, want)
		}
	}
	for _, in := range []string{"", "x", "-1", "KiB", "1e30", "NaN", "1 PiB"} {
		var s size
		if err := s.Set(in); err == nil {
			t.Errorf("%q is taken as %d bytes", in, s.bytes)
		}
	}
}
