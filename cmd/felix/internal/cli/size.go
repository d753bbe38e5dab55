package cli

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// size is a flag with a number of bytes: "65536", "64KiB", "1.5GiB", "10GB".
type size struct{ bytes int64 }

var sizeUnits = []struct {
	suffix string
	factor float64
}{
	{"kib", 1 << 10},
	{"mib", 1 << 20},
	{"gib", 1 << 30},
	{"tib", 1 << 40},
	{"kb", 1e3},
	{"mb", 1e6},
	{"gb", 1e9},
	{"tb", 1e12},
	{"k", 1 << 10},
	{"m", 1 << 20},
	{"g", 1 << 30},
	{"t", 1 << 40},
	{"b", 1},
	{"", 1},
}

// String is the number of bytes.
func (s *size) String() string { return strconv.FormatInt(s.bytes, 10) }

// Type is what stands for the value in a usage text.
func (s *size) Type() string { return "bytes" }

// Set reads a number with or without a unit.
func (s *size) Set(text string) error {
	lower := strings.ToLower(strings.TrimSpace(text))
	for _, unit := range sizeUnits {
		number, ok := strings.CutSuffix(lower, unit.suffix)
		if !ok {
			continue
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || value < 0 || math.IsNaN(value) || value*unit.factor >= math.MaxInt64 {
			break
		}
		s.bytes = int64(value * unit.factor)
		return nil
	}
	return fmt.Errorf("want a size such as 65536, 64KiB or 1.5GiB")
}
