package quorum

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Snapshot takes one now, so that entries before it can go. It does nothing when
// nothing was applied since the last one.
func (g *Group) Snapshot(ctx context.Context) error {
	if !g.snapping.CompareAndSwap(false, true) {
		return fmt.Errorf("%w: a snapshot is being taken", ErrBusy)
	}
	done := make(chan error, 1)
	if !g.run(func() {
		defer g.snapping.Store(false)
		done <- g.snapshot()
	}) {
		g.snapping.Store(false)
		return ErrClosed
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *Group) snapshot() error {
	if g.fsm.applied.Load() <= g.log.based() {
		return nil
	}
	began := time.Now()
	f := g.raft.Snapshot()
	endWith(f, g.ended)
	err := f.Error()
	if m := g.n.cfg.Metrics.Snapshot; m != nil {
		m(g.id, time.Since(began), err)
	}
	if err != nil {
		return fmt.Errorf("quorum: group %d: snapshot: %w", g.id, err)
	}
	return nil
}

// snapshotSoon takes a snapshot, unless one is being taken or the last try is too recent.
func (g *Group) snapshotSoon() { g.soon("no snapshot; it is tried again", g.snapshot) }

// compactSoon removes what an install kept until now.
func (g *Group) compactSoon() {
	g.soon("entries before the snapshot stay; it is tried again", func() error { return g.log.compact(g.log.based()) })
}

// soon is the ticker's.
func (g *Group) soon(otherwise string, do func() error) {
	if time.Since(g.snapped) < snapshotPause || !g.snapping.CompareAndSwap(false, true) {
		return
	}
	g.snapped = time.Now()
	if !g.run(func() {
		defer g.snapping.Store(false)
		if err := do(); err != nil && !errors.Is(err, ErrClosed) {
			g.slg.Warn(otherwise, "err", err)
		}
	}) {
		g.snapping.Store(false)
	}
}

// pressed has the group let go of all entries that it can spare.
func (g *Group) pressed() {
	if !g.snapping.CompareAndSwap(false, true) {
		return // the log asks again
	}
	if !g.run(func() {
		defer g.snapping.Store(false)
		g.log.press()
		err := g.snapshot()
		if err == nil { // it may have had nothing new to take
			err = g.log.compact(g.log.based())
		}
		if err != nil && !errors.Is(err, ErrClosed) {
			g.slg.Warn("the write-ahead log is full, and this group cannot let go of entries", "err", err)
		}
	}) {
		g.snapping.Store(false)
	}
}

// snapshotPause is the least time between two snapshots that the node takes by itself.
const snapshotPause = time.Second
