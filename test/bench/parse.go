package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
)

// metrics are a run's numbers. All tools' are under the product's names.
type metrics map[string]float64

// pair is how the reference programs print a number.
var pair = regexp.MustCompile(`(\S+?)=([-+0-9.eE]+)(?:\s|$)`)

// alias are the reference programs' names for what the product calls otherwise.
var alias = map[string]string{
	"frames/s":            "msgs_per_s",
	"deliveries/s":        "msgs_per_s",
	"msgs/s":              "msgs_per_s",
	"MB/s":                "mb_per_s",
	"send_cpu_s/Mframe":   "broker_cpu_s_per_mdeliveries",
	"server_cpu_s/Mdeliv": "broker_cpu_s_per_mdeliveries",
	"server_cpu_us/msg":   "broker_cpu_s_per_mdeliveries",
	"ack_p50_us":          "p50_us",
	"ack_p99_us":          "p99_us",
}

// parseLine reads the last line of a reference program.
func parseLine(out []byte) (metrics, error) {
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	m := metrics{}
	for _, kv := range pair.FindAllSubmatch(lines[len(lines)-1], -1) {
		f, err := strconv.ParseFloat(string(kv[2]), 64)
		if err != nil {
			continue // a number's characters, and no number: "js-always" has none of them
		}
		name := string(kv[1])
		if a, ok := alias[name]; ok {
			name = a
		}
		m[name] = f
	}
	if len(m) == 0 {
		return nil, fmt.Errorf("no numbers in %q", out)
	}
	return m, nil
}

// parseReport reads the report of felix bench: the last object in its output; or of a demonstration: the whole output.
func parseReport(out []byte) (metrics, json.RawMessage, error) {
	var raw json.RawMessage
	for line := range bytes.Lines(out) {
		if bytes.HasPrefix(line, []byte("{")) && json.Valid(line) {
			raw = bytes.TrimSpace(line)
		}
	}
	if raw == nil && json.Valid(out) {
		raw = out
	}
	if raw == nil {
		return nil, nil, errors.New("no report in the output")
	}
	var object map[string]any
	if err := json.Unmarshal(raw, &object); err != nil {
		return nil, nil, err
	}
	m := metrics{}
	flatten(m, "", object)
	enterKills(m, object)
	m["missing"] = m["expected"] - m["delivered"]
	return m, raw, nil
}

// flatten enters numbers under their dotted keys.
func flatten(m metrics, prefix string, object map[string]any) {
	for k, v := range object {
		switch v := v.(type) {
		case float64:
			m[prefix+k] = v
		case map[string]any:
			flatten(m, prefix+k+".", v)
		}
	}
}

// enterKills sums up how long each kill of a failover took.
func enterKills(m metrics, object map[string]any) {
	kills, _ := object["kills"].([]any)
	var took []float64
	for _, k := range kills {
		if k, ok := k.(map[string]any); ok {
			if ms, ok := k["next_ack_ms"].(float64); ok {
				took = append(took, ms)
			}
		}
	}
	if len(took) > 0 {
		m["next_ack_ms.median"], m["next_ack_ms.least"], m["next_ack_ms.most"] = median(took), slices.Min(took), slices.Max(took)
	}
}
