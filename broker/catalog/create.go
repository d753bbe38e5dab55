package catalog

import (
	"encoding/hex"
	"fmt"
	"io"
	"regexp"
)

var incarnationPattern = regexp.MustCompile(`^[0-9a-f]{32}$`)

// NewIncarnation makes an incarnation from a source of random bytes.
func NewIncarnation(random io.Reader) (string, error) {
	var b [16]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", fmt.Errorf("catalog: make incarnation: %w", err)
	}
	return hex.EncodeToString(b[:]), nil
}

// Create adds a stream. It can be retried: when the stream is there because of
// the same request id, or with the same settings, that is success, with created
// false. A stream with other settings is ErrExists, a full catalog ErrLimit.
//
// A memory stream comes with a first block of offsets reserved.
func (c *Catalog) Create(spec StreamSpec, requestID string) (e Entry, created bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	incarnation, err := NewIncarnation(c.cfg.Random)
	if err != nil {
		return Entry{}, false, err
	}
	r, err := c.change(CreateStream{Spec: spec, Incarnation: incarnation, RequestID: requestID})
	if err != nil {
		return Entry{}, false, err
	}
	if r.Created && r.Entry.Spec.Durability == Memory {
		c.asked[incarnation] = &reservations{byShard: append([]uint64(nil), r.Entry.FirstOffsets...)}
	}
	return *r.Entry, r.Created, nil
}

// saturated adds without running over.
func saturated(a, b uint64) uint64 {
	if sum := a + b; sum >= a {
		return sum
	}
	return ^uint64(0)
}
