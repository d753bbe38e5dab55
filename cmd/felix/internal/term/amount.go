package term

import (
	"fmt"
	"time"
)

// Bytes writes an amount of bytes the way people read it: "512 B", "1.5 KiB", "64 MiB".
func Bytes(n uint64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	value, unit := float64(n), -1
	for value >= 1024 && unit < len("KMGTPE")-1 {
		value /= 1024
		unit++
	}
	text := fmt.Sprintf("%.1f", value)
	if text[len(text)-2:] == ".0" {
		text = text[:len(text)-2]
	}
	return text + " " + "KMGTPE"[unit:unit+1] + "iB"
}

// Duration writes a duration with about three digits.
func Duration(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + Duration(-d)
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return d.Round(100 * time.Microsecond).String()
	case d < time.Minute:
		return d.Round(10 * time.Millisecond).String()
	case d < 48*time.Hour:
		return d.Round(time.Second).String()
	}
	return fmt.Sprintf("%dd", d/(24*time.Hour))
}

// Plural writes a count with its noun: "1 record", "2 records".
func Plural[N ~int | ~int64 | ~uint64](n N, noun string) string {
	if n == 1 {
		return fmt.Sprintf("1 %s", noun)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
