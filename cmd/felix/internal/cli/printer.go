package cli

import (
	"bufio"
	"encoding/json"
	"unicode/utf8"

	"felix.dev/felix/client"
)

// printer writes one record.
type printer interface {
	print(w *bufio.Writer, shard uint32, e client.Event) error
}

func newPrinter(output string) printer {
	switch output {
	case "json":
		return jsonPrinter{}
	case "raw":
		return rawPrinter{}
	}
	return textPrinter{}
}

type textPrinter struct{}

func (textPrinter) print(w *bufio.Writer, _ uint32, e client.Event) error {
	if _, err := w.Write(e.Payload); err != nil {
		return err
	}
	return w.WriteByte('\n')
}

type rawPrinter struct{}

func (rawPrinter) print(w *bufio.Writer, _ uint32, e client.Event) error {
	_, err := w.Write(e.Payload)
	return err
}

// jsonRecord is a line of `felix sub -o json`. Exactly one of the payloads is there.
type jsonRecord struct {
	Offset  *uint64 `json:"offset,omitempty"`
	Shard   uint32  `json:"shard"`
	Gap     uint64  `json:"gap,omitempty"`
	Payload *string `json:"payload,omitempty"`
	Base64  []byte  `json:"payload_base64,omitempty"`
}

type jsonPrinter struct{}

func (jsonPrinter) print(w *bufio.Writer, shard uint32, e client.Event) error {
	r := jsonRecord{Shard: shard, Gap: e.Gap}
	if e.HasOffset {
		r.Offset = &e.Offset
	}
	if utf8.Valid(e.Payload) {
		text := string(e.Payload)
		r.Payload = &text
	} else {
		r.Base64 = e.Payload
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(r)
}
