package wire

import (
	"encoding/json"
	"fmt"
)

// StartKind says where a subscription begins.
type StartKind uint8

// Kinds of start. Latest is the zero value, as for an absent start.
const (
	StartLatest   StartKind = iota // only what comes later
	StartEarliest                  // the oldest record retained
	StartOffset                    // exactly at Start.Offset
)

// Start is where a subscription begins.
type Start struct {
	Kind   StartKind
	Offset uint64 // for StartOffset
}

// StartAt begins exactly at an offset.
func StartAt(offset uint64) Start { return Start{Kind: StartOffset, Offset: offset} }

func (s Start) String() string {
	switch s.Kind {
	case StartEarliest:
		return "earliest"
	case StartOffset:
		return fmt.Sprintf("offset %d", s.Offset)
	case StartLatest:
	}
	return "latest"
}

type startOffset struct {
	Offset uint64 `json:"offset"`
}

// MarshalJSON is "latest", "earliest" or {"offset":n}.
func (s Start) MarshalJSON() ([]byte, error) {
	if s.Kind == StartOffset {
		return json.Marshal(startOffset{Offset: s.Offset})
	}
	return json.Marshal(s.String())
}

// UnmarshalJSON reads the three forms; anything else is refused.
func (s *Start) UnmarshalJSON(b []byte) error {
	name, data, err := enumCase(b)
	if err != nil {
		return err
	}
	hasData := string(data) != "null"
	switch {
	case name == "latest" && !hasData:
		*s = Start{}
	case name == "earliest" && !hasData:
		*s = Start{Kind: StartEarliest}
	case name == "offset" && hasData:
		*s = Start{Kind: StartOffset}
		return json.Unmarshal(data, &s.Offset)
	default:
		return fmt.Errorf("%w: unknown start %q", ErrMalformed, name)
	}
	return nil
}
