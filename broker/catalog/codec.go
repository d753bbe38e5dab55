package catalog

import (
	"encoding/json"
	"fmt"
	"time"
)

// commandVersion is the version of all commands that this release knows. A command
// that gets another meaning or another field gets another version; until all
// brokers of a cluster know it, it is not to be proposed.
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
// applied. What is no command at all is a *CorruptError.
func DecodeCommand(data []byte) (cmd Command, at time.Time, err error) {
	var env commandEnvelope
	if err := json.Unmarshal(data, &env); err != nil {
		return nil, time.Time{}, &CorruptError{Path: "a command", Reason: "it is not the JSON that was written", Err: err}
	}
	read := commands[env.Kind]
	if read == nil || env.Version != commandVersion {
		return nil, time.Time{}, &UnknownCommandError{Kind: env.Kind, Version: env.Version}
	}
	if cmd, err = read(env.Command); err != nil {
		return nil, time.Time{}, &UnknownCommandError{Kind: env.Kind, Version: env.Version, Err: err}
	}
	return cmd, env.At, nil
}

var commands = make(map[Kind]func(json.RawMessage) (Command, error))

func known[C Command]() {
	var zero C
	commands[zero.kind()] = func(raw json.RawMessage) (Command, error) {
		var c C
		err := strictly(raw, &c)
		return c, err
	}
}

func init() {
	known[FoundCluster]()
	known[ImportStreams]()
	known[FinishImport]()
	known[SetSettings]()
	known[CreateStream]()
	known[UpdateStream]()
	known[SealStream]()
	known[ReportEnds]()
	known[DeleteStream]()
	known[ReserveOffsets]()
	known[RegisterBroker]()
	known[SetDraining]()
	known[RemoveBroker]()
	known[SetTargets]()
	known[ReportGroup]()
	known[BeginMove]()
	known[FinishMove]()
	known[CancelMove]()
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
