package term

import (
	"testing"
	"time"
)

func TestAmounts(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Bytes(0), "0 B"},
		{Bytes(1023), "1023 B"},
		{Bytes(1536), "1.5 KiB"},
		{Bytes(64 << 20), "64 MiB"},
		{Bytes(1<<64 - 1), "16 EiB"},
		{Duration(1234 * time.Nanosecond), "1µs"},
		{Duration(12345 * time.Microsecond), "12.3ms"},
		{Duration(1234567 * time.Microsecond), "1.23s"},
		{Duration(3*time.Hour + 1), "3h0m0s"},
		{Duration(72 * time.Hour), "3d"},
		{Duration(-time.Second), "-1s"},
		{Plural(1, "record"), "1 record"},
		{Plural(uint64(2), "record"), "2 records"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
