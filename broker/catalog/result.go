package catalog

import (
	"encoding/json"
	"errors"
)

// Result is what came of a command. It has a JSON form, so that it can travel to
// whoever proposed the command; errors.Is and errors.As find there what they would
// have found here.
type Result struct {
	// Err says why the command was refused; nil: done, or done already.
	Err error
	// Changed says that the state is another one.
	Changed bool
	// Created says that CreateStream made the stream.
	Created bool
	// Entry is the stream of a command about one: as it is now, or as it was when
	// it is gone. Nil of other commands, and of a deletion that was done before.
	Entry *Entry
}

// refusals are the errors that have a name when they travel.
var refusals = map[string]error{
	"exists": ErrExists, "not_found": ErrNotFound, "limit": ErrLimit, "deleting": ErrDeleting,
	"importing": ErrImporting, "placement": ErrPlacement, "stale": ErrStale, "no_cluster": ErrNoCluster,
	"other_cluster": ErrOtherCluster, "no_broker": ErrNoBroker, "node_taken": ErrNodeTaken, "removed": ErrRemoved,
	"full": ErrFull,
}

type resultJSON struct {
	Changed bool         `json:"changed,omitempty"`
	Created bool         `json:"created,omitempty"`
	Entry   *Entry       `json:"entry,omitempty"`
	Refused *refusedJSON `json:"refused,omitempty"`
}

type refusedJSON struct {
	Reason  string      `json:"reason,omitempty"`
	Message string      `json:"message"`
	Invalid *Name       `json:"invalid,omitempty"` // stream of an InvalidError; the message is without it
	Broker  *string     `json:"broker,omitempty"`  // node of a BrokerError; the message is without it
	Holds   *HoldsError `json:"holds,omitempty"`
}

// refused is an error that has travelled.
type refused struct {
	message string
	reason  error // may be nil
}

func (r *refused) Error() string { return r.message }

func (r *refused) Unwrap() error { return r.reason }

// MarshalJSON writes the result.
func (r Result) MarshalJSON() ([]byte, error) {
	out := resultJSON{Changed: r.Changed, Created: r.Created, Entry: r.Entry}
	if r.Err != nil {
		out.Refused = refusedOf(r.Err)
	}
	return json.Marshal(out)
}

func refusedOf(err error) *refusedJSON {
	out := &refusedJSON{Message: err.Error()}
	for reason, is := range refusals {
		if errors.Is(err, is) {
			out.Reason = reason
		}
	}
	if e, ok := errors.AsType[*InvalidError](err); ok {
		out.Invalid, out.Message = &e.Name, e.Err.Error()
	}
	if e, ok := errors.AsType[*BrokerError](err); ok {
		out.Broker, out.Message = &e.Node, e.Err.Error()
	}
	if e, ok := errors.AsType[*HoldsError](err); ok {
		out.Holds = e
	}
	return out
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (r *Result) UnmarshalJSON(data []byte) error {
	var in resultJSON
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	*r = Result{Changed: in.Changed, Created: in.Created, Entry: in.Entry}
	if in.Refused != nil {
		r.Err = in.Refused.error()
	}
	return nil
}

func (f *refusedJSON) error() error {
	var err error = &refused{message: f.Message, reason: refusals[f.Reason]}
	switch {
	case f.Holds != nil:
		return f.Holds
	case f.Invalid != nil:
		return &InvalidError{Name: *f.Invalid, Err: err}
	case f.Broker != nil:
		return &BrokerError{Node: *f.Broker, Err: err}
	}
	return err
}
