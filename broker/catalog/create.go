package catalog

import (
	"encoding/hex"
	"fmt"
	"io"
)

// Create adds a stream. It can be retried: when the stream is there because of
// the same request id, or with the same settings, that is success, with created
// false. A stream with other settings is ErrExists, a full catalog ErrLimit.
//
// A memory stream comes with a first block of offsets reserved.
func (c *Catalog) Create(spec StreamSpec, requestID string) (e Entry, created bool, err error) {
	spec = spec.Normalized()
	if err := spec.Validate(); err != nil {
		return Entry{}, false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.current.Load()
	if have := old.entries[spec.Name.String()]; have != nil {
		if (requestID != "" && requestID == have.RequestID) || have.Spec == spec {
			return *have, false, nil
		}
		return Entry{}, false, fmt.Errorf("catalog: create stream %s: %w", spec.Name, ErrExists)
	}
	if len(old.entries) >= c.cfg.MaxStreams {
		return Entry{}, false, fmt.Errorf("catalog: create stream %s: %w (%d)", spec.Name, ErrLimit, c.cfg.MaxStreams)
	}
	incarnation, err := c.newIncarnation()
	if err != nil {
		return Entry{}, false, err
	}
	next := old.copy()
	g := next.exhume(spec.Name)
	added := (&Entry{
		Spec: spec, Incarnation: incarnation, CreatedAt: c.cfg.Now().UTC().Round(0), RequestID: requestID,
		floors: g.floors, floor: g.floor,
	}).withShards(spec.Shards)
	for i := range added.Reserved {
		added.Reserved[i] = saturated(added.FirstOffsets[i], c.cfg.ReserveBlock)
	}
	next.entries[spec.Name.String()] = added
	if err := c.commit(old, next); err != nil {
		return Entry{}, false, err
	}
	if spec.Durability == Memory {
		c.asked[incarnation] = &reservations{byShard: append([]uint64(nil), added.FirstOffsets...)}
	}
	return *added, true, nil
}

func (c *Catalog) newIncarnation() (string, error) {
	var b [16]byte
	if _, err := io.ReadFull(c.cfg.Random, b[:]); err != nil {
		return "", fmt.Errorf("catalog: make incarnation: %w", err)
	}
	return hex.EncodeToString(b[:]), nil
}

// saturated adds without running over.
func saturated(a, b uint64) uint64 {
	if sum := a + b; sum >= a {
		return sum
	}
	return ^uint64(0)
}
