package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
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

// parseReport reads the report of felix bench: the last object in its output.
func parseReport(out []byte) (metrics, json.RawMessage, error) {
	var raw json.RawMessage
	for line := range bytes.Lines(out) {
		if bytes.HasPrefix(line, []byte("{")) && json.Valid(line) {
			raw = bytes.TrimSpace(line)
		}
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
