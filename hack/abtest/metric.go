package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// metric takes one number from what a run printed and used.
type metric struct {
	name    string
	extract func(out []byte, cpu time.Duration) (float64, error)
}

func cpuMetric() metric {
	return metric{"cpu_s", func(_ []byte, cpu time.Duration) (float64, error) { return cpu.Seconds(), nil }}
}

func regexpMetric(expr string) (metric, error) {
	re, err := regexp.Compile(expr)
	if err != nil {
		return metric{}, fmt.Errorf("metric %q: %w", expr, err)
	}
	if re.NumSubexp() != 1 {
		return metric{}, fmt.Errorf("metric %q: want exactly one group, have %d", expr, re.NumSubexp())
	}
	return metric{expr, func(out []byte, _ time.Duration) (float64, error) {
		m := re.FindSubmatch(out)
		if m == nil {
			return 0, fmt.Errorf("metric %q: no match in %q", expr, out)
		}
		return strconv.ParseFloat(string(m[1]), 64)
	}}, nil
}

// jsonMetric reads a key of the last JSON object that the run printed. A dot enters an object in the object.
func jsonMetric(key string) metric {
	return metric{key, func(out []byte, _ time.Duration) (float64, error) {
		object, err := lastObject(out)
		if err != nil {
			return 0, fmt.Errorf("metric %q: %w", key, err)
		}
		var value any = object
		for part := range strings.SplitSeq(key, ".") {
			inner, ok := value.(map[string]any)
			if !ok {
				return 0, fmt.Errorf("metric %q: what holds %q is not an object", key, part)
			}
			if value, ok = inner[part]; !ok {
				return 0, fmt.Errorf("metric %q: no key %q", key, part)
			}
		}
		number, ok := value.(float64)
		if !ok {
			return 0, fmt.Errorf("metric %q: %v is not a number", key, value)
		}
		return number, nil
	}}
}

var errNoObject = errors.New("no JSON object in the output")

// lastObject finds the last JSON object that begins at the start of a line, so that lines of progress around
// it do no harm. An object inside that object is not taken for one.
func lastObject(out []byte) (map[string]any, error) {
	var last map[string]any
	for len(out) > 0 {
		used := bytes.IndexByte(out, '\n') + 1
		if out[0] == '{' {
			var object map[string]any
			decoder := json.NewDecoder(bytes.NewReader(out))
			if decoder.Decode(&object) == nil {
				last, used = object, int(decoder.InputOffset())
			}
		}
		if used == 0 {
			break
		}
		out = out[used:]
	}
	if last == nil {
		return nil, errNoObject
	}
	return last, nil
}
