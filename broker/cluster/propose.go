package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"felix.dev/felix/broker/catalog"
	"felix.dev/felix/broker/peer"
	"felix.dev/felix/broker/quorum"
)

// repeatAfter is how soon an entry is offered to a leader again.
const repeatAfter = 150 * time.Millisecond

// Propose makes a change of the catalog, from any broker, and returns once this
// broker's own catalog has it. What the catalog itself says against it is in the
// result. An error is ErrNoLeader (nothing was changed, and trying again helps
// when there is a leader) or ErrOutcomeUnknown; both say why.
//
// It goes on trying until ctx ends, or for Timings.Propose if it has no end. A
// command that is offered twice on the way is carried out once.
func (c *Cluster) Propose(ctx context.Context, cmd catalog.Command) (catalog.Result, error) {
	id, data, err := newEntry(cmd, c.cfg.Now())
	if err != nil {
		return catalog.Result{}, err
	}
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.cfg.Timings.Propose)
		defer cancel()
	}
	outcome, forget := c.machine.expect(id)
	defer forget()
	var why error
	offered := false // it may be in the log
	for {
		changed := c.leaders.changed()
		index, err := c.append(ctx, data)
		if err == nil {
			return c.await(ctx, index, outcome)
		}
		why = err
		offered = offered || maybeDone(err)
		pause := time.NewTimer(jittered(repeatAfter))
		select {
		case done := <-outcome:
			pause.Stop()
			return done.result, nil
		case <-pause.C:
		case <-changed:
			pause.Stop()
		case <-ctx.Done():
			pause.Stop()
			return catalog.Result{}, c.gaveUp(offered, why)
		case <-c.ended:
			pause.Stop()
			return catalog.Result{}, c.Err()
		}
	}
}

// await waits until an entry that is in the log is applied here, too.
func (c *Cluster) await(ctx context.Context, index uint64, outcome <-chan applied) (catalog.Result, error) {
	for {
		at, more := c.machine.progress()
		select {
		case done := <-outcome:
			return done.result, nil
		default:
		}
		if at >= index {
			// A snapshot brought it: what came of it is not in there.
			return catalog.Result{}, later(CodeOutcomeUnknown, "the change was made or refused, and this broker learnt of it too late to say which")
		}
		select {
		case done := <-outcome:
			return done.result, nil
		case <-more:
		case <-ctx.Done():
			return catalog.Result{}, later(CodeOutcomeUnknown, "the change was decided on, and this broker has not heard the outcome in time")
		case <-c.ended:
			return catalog.Result{}, c.Err()
		}
	}
}

// append has the metadata leader append an entry, and returns its index.
func (c *Cluster) append(ctx context.Context, data []byte) (uint64, error) {
	meta := c.meta.Load()
	if meta == nil {
		return 0, later(CodeNoLeader, "this broker has not joined yet")
	}
	switch st := meta.State(); {
	case st.Leading:
		return c.appendHere(ctx, meta, data)
	case st.LeaderKnown:
		return c.appendAt(ctx, st.Leader.Node, data)
	}
	return 0, later(CodeNoLeader, "there is no leader of the metadata group")
}

// appendAt has another broker append an entry. One that does not answer is given up
// as soon as somebody else leads: the entry can be offered again.
func (c *Cluster) appendAt(ctx context.Context, leader string, data []byte) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timings.Change)
	defer cancel()
	var answer proposeAnswer
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		err = c.cfg.Peer.Call(ctx, leader, methodPropose, proposeRequest{Entry: data}, &answer)
	}()
	for {
		changed := c.leaders.changed()
		if now, ok := c.metadataLeader(); ok && now != leader {
			cancel()
		}
		select {
		case <-done:
			return answer.Index, incoming(err)
		case <-changed:
		}
	}
}

func (c *Cluster) appendHere(ctx context.Context, meta *quorum.Group, data []byte) (uint64, error) {
	v, err := meta.Propose(data).Wait(ctx)
	switch {
	case errors.Is(err, quorum.ErrNotLeader):
		return 0, later(CodeNoLeader, "this broker does not lead the metadata group any more")
	case err != nil && over(ctx, err), errors.Is(err, quorum.ErrOutcomeUnknown):
		return 0, later(CodeOutcomeUnknown, "a majority has not confirmed the change in time: %v", err)
	case err != nil:
		return 0, later(CodeNoLeader, "the metadata leader %s takes no changes: %v", c.cfg.Self.Node, err)
	}
	done, ok := v.(applied)
	if !ok {
		return 0, later(CodeOutcomeUnknown, "the change has no outcome")
	}
	c.committed.now()
	return done.index, nil
}

// onPropose is another broker's entry.
func (c *Cluster) onPropose(ctx context.Context, _ string, body json.RawMessage) (any, error) {
	var req proposeRequest
	if err := json.Unmarshal(body, &req); err != nil {
		return nil, refuse(CodeInvalid, "propose: %v", err)
	}
	e, err := readEntry(req.Entry)
	if err == nil {
		_, _, err = catalog.DecodeCommand(e.Command)
	}
	if err != nil {
		return nil, refuse(CodeVersion, "%s cannot read the change (%v): it runs another release", c.cfg.Self.Node, err)
	}
	meta := c.meta.Load()
	if meta == nil {
		return nil, later(CodeNoLeader, "%s has not joined yet", c.cfg.Self.Node)
	}
	index, err := c.appendHere(ctx, meta, req.Entry)
	return proposeAnswer{Index: index}, err
}

// maybeDone tells whether what failed may have been done, or may still be.
func maybeDone(err error) bool {
	if e, ok := errors.AsType[*peer.Error](err); ok {
		return !e.Retry && e.Code != peer.CodeUnknownMethod && e.Code != peer.CodeBadRequest
	}
	return errors.Is(err, ErrOutcomeUnknown) || errors.Is(err, peer.ErrUnanswered)
}

// gaveUp says what is known of a change that was not confirmed.
func (c *Cluster) gaveUp(offered bool, why error) error {
	reason := c.noLeaderReason()
	if reason == "" {
		reason = why.Error()
	}
	if offered {
		return later(CodeOutcomeUnknown, "the change may have been made: %s", reason)
	}
	return later(CodeNoLeader, "the catalog cannot be changed now: %s", reason)
}
