package catalog

import (
	"encoding/json"
	"fmt"
	"time"
)

// commandVersion is the version of all commands that this release knows. A command
// that gets another field or another meaning gets another version, and it is not to
// be proposed until all brokers of the cluster know it. What a command is refused
// for is part of its meaning: brokers that disagree about a stream's settings have
// different streams.
const commandVersion = 1

// MaxCommandBytes is the largest encoded command.
const MaxCommandBytes = 512 << 10

type commandEnvelope struct {
	Version int             `json:"version"`
	Kind    Kind            `json:"kind"`
	At      time.Time       `json:"at"`
	Command json.RawMessage `json:"command"`
}

// EncodeCommand gives a command the form in which it is proposed. at is the
// proposer's time.
func EncodeCommand(cmd Command, at time.Time) ([]byte, error) {
	raw, err := json.Marshal(cmd)
	if err != nil {
		return nil, fmt.Errorf("catalog: encode command %s: %w", cmd.kind(), err)
	}
	data, err := json.Marshal(commandEnvelope{Version: commandVersion, Kind: cmd.kind(), At: at.UTC().Round(0), Command: raw})
	if err != nil {
		return nil, fmt.Errorf("catalog: encode command %s: %w", cmd.kind(), err)
	}
	if len(data) > MaxCommandBytes {
		return nil, fmt.Errorf("catalog: command %s has %d bytes: at most %d", cmd.kind(), len(data), MaxCommandBytes)
	}
	return data, nil
}

// DecodeCommand reads what EncodeCommand gave. A command of a later release is an
// *UnknownCommandError: one that is not understood to its last field must not be
// applied. What is no command at all is a
// *DamagedCommandError.
func DecodeCommand(data []byte) (cmd Command, at time.Time, err error) {
	var env commandEnvelope
	if err := json.Unmarshal(data, &env); err != nil {
		return nil, time.Time{}, &DamagedCommandError{Err: err}
	}
	read := commands[env.Kind]
	switch {
	case env.Version < 1 || len(env.Command) == 0:
		return nil, time.Time{}, &DamagedCommandError{Err: fmt.Errorf("version is %d, kind %.40q", env.Version, env.Kind)}
	case read == nil || env.Version > commandVersion:
		return nil, time.Time{}, &UnknownCommandError{Kind: env.Kind, Version: env.Version}
	}
	if cmd, err = read(env.Command); err != nil {
		return nil, time.Time{}, &UnknownCommandError{Kind: env.Kind, Version: env.Version, Err: err}
	}
	return cmd, env.At, nil
}

// commands are all that this release knows.
var commands = readers(
	reads[FoundCluster],
	reads[ImportStreams],
	reads[FinishImport],
	reads[SetSettings],
	reads[CreateStream],
	reads[UpdateStream],
	reads[SealStream],
	reads[ReportEnds],
	reads[DeleteStream],
	reads[ReserveOffsets],
	reads[RegisterBroker],
	reads[SetDraining],
	reads[RemoveBroker],
	reads[SetTargets],
	reads[ReportGroup],
	reads[BeginMove],
	reads[FinishMove],
	reads[CancelMove],
)

func reads[C Command](raw json.RawMessage) (Command, error) {
	var c C
	if raw == nil {
		return c, nil
	}
	err := strictly(raw, &c)
	return c, err
}

func readers(all ...func(json.RawMessage) (Command, error)) map[Kind]func(json.RawMessage) (Command, error) {
	out := make(map[Kind]func(json.RawMessage) (Command, error), len(all))
	for _, read := range all {
		zero, _ := read(nil) // does not fail
		out[zero.kind()] = read
	}
	return out
}

// ApplyEncoded applies what EncodeCommand gave. An error means that this broker
// does not know what the command does (see DecodeCommand): the state is as it was,
// and whoever keeps it must stop, because the others have gone on.
func (s *State) ApplyEncoded(index uint64, data []byte) (*State, Result, error) {
	if index != 0 && index <= s.index {
		return s, Result{}, nil
	}
	cmd, at, err := DecodeCommand(data)
	if err != nil {
		return s, Result{}, fmt.Errorf("catalog: entry %d: %w", index, err)
	}
	next, result := s.Apply(index, cmd, at)
	return next, result, nil
}
