package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"felix.dev/felix/broker/wire"
	"felix.dev/felix/client"
)

// input is where the records of a publish come from: arguments, files, or standard input.
type input struct {
	args      []string
	files     []string // "-" is standard input
	stdin     io.Reader
	whole     bool   // a file is one record, not one a line
	key       []byte // of all records, if keyed
	keyed     bool
	separator string // a record's own key stands before the first one; "": no
}

// each gives every record to take, which may keep it, until there are no more or take refuses.
func (in *input) each(take func(client.Message) error) error {
	for _, arg := range in.args {
		if err := in.give([]byte(arg), "argument", take); err != nil {
			return err
		}
	}
	files := in.files
	if len(in.args) == 0 && len(files) == 0 {
		files = []string{"-"}
	}
	for _, name := range files {
		if err := in.file(name, take); err != nil {
			return err
		}
	}
	return nil
}

func (in *input) file(name string, take func(client.Message) error) error {
	if name == "-" {
		return in.read(in.stdin, "standard input", take)
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	return in.read(f, name, take)
}

func (in *input) read(r io.Reader, name string, take func(client.Message) error) error {
	if in.whole {
		data, err := io.ReadAll(io.LimitReader(r, wire.MaxRecord+1))
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		return in.give(data, name, take)
	}
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), wire.MaxRecord+2)
	lines.Split(scanLines)
	n := 0
	for lines.Scan() {
		n++
		if err := in.give(bytes.Clone(lines.Bytes()), fmt.Sprintf("%s, line %d", name, n), take); err != nil {
			return err
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("%s, line %d: longer than the %d bytes that a record may have", name, n+1, wire.MaxRecord)
	}
	if lines.Err() != nil {
		return fmt.Errorf("read %s: %w", name, lines.Err())
	}
	return nil
}

func (in *input) give(payload []byte, where string, take func(client.Message) error) error {
	m := client.Message{Key: in.key, Keyed: in.keyed, Payload: payload}
	if in.separator != "" {
		key, rest, found := bytes.Cut(payload, []byte(in.separator))
		if !found {
			return fmt.Errorf("%s: no %q between a key and a record", where, in.separator)
		}
		m.Key, m.Keyed, m.Payload = key, true, rest
	}
	if len(m.Payload) > wire.MaxRecord {
		return fmt.Errorf("%s: longer than the %d bytes that a record may have", where, wire.MaxRecord)
	}
	return take(m)
}

// scanLines cuts at line feeds only: a carriage return is part of the record.
func scanLines(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}
