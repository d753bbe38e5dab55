package quorum

import (
	"bytes"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

var (
	errInboxFull  = errors.New("quorum: too many requests wait for the group")
	errSuperseded = errors.New("quorum: a newer snapshot has come")
)

const (
	// inboxRequests and inboxBytes bound what waits for one group's raft. A leader has
	// only a few requests under way, so it is one that gave up waiting who fills it.
	inboxRequests = 16
	inboxBytes    = 64 << 20
	// progressEvery is how often a leader hears that its snapshot is being installed.
	progressEvery = time.Second
)

// inbox hands requests of other servers to a group's raft, one after the other, and
// their answers back.
type inbox struct {
	g *Group

	mu      sync.Mutex
	queue   []request
	bytes   int
	closed  bool
	install *install // queued or under way; nil: none
	wake    chan struct{}
}

type request struct {
	c       *inbound
	f       frame
	install *install
}

// install is a snapshot on its way into this replica. A leader that asks again
// while it goes on, because the connection broke, waits for the same one.
type install struct {
	term, index uint64
	from        Server
	asking      []request
}

func newInbox(g *Group) *inbox { return &inbox{g: g, wake: make(chan struct{}, 1)} }

// put queues a request. It never blocks.
func (b *inbox) put(c *inbound, f frame) error {
	r := request{c: c, f: f}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return errAbsent
	}
	if f.kind == frameInstall {
		i, _, err := decodeInstall(f.body, c.name)
		if err != nil {
			return err
		}
		if b.install != nil && b.install.term == i.Term && b.install.index == i.LastLogIndex && b.install.from == c.from {
			b.install.asking = append(b.install.asking, request{c: c, f: frame{group: f.group, id: f.id}})
			return nil
		}
		r.install = &install{term: i.Term, index: i.LastLogIndex, from: c.from, asking: []request{{c: c, f: frame{group: f.group, id: f.id}}}}
	}
	if len(b.queue) >= inboxRequests || len(b.queue) > 0 && b.bytes+len(f.body) > inboxBytes {
		return errInboxFull
	}
	if r.install != nil {
		b.install = r.install
		b.supersede(c.from)
	}
	b.queue = append(b.queue, r)
	b.bytes += len(f.body)
	select {
	case b.wake <- struct{}{}:
	default: // it is awake
	}
	return nil
}

// supersede drops an install that waits, for the same leader now sends a newer snapshot.
func (b *inbox) supersede(from Server) {
	b.queue = slices.DeleteFunc(b.queue, func(r request) bool {
		if r.install == nil || r.install.from != from {
			return false
		}
		b.bytes -= len(r.f.body)
		for _, asks := range r.install.asking {
			b.g.n.run(func() { asks.c.refuse(asks.f, errSuperseded) })
		}
		return true
	})
}

func (b *inbox) next() (request, bool) {
	for {
		b.mu.Lock()
		if len(b.queue) > 0 {
			r := b.queue[0]
			b.queue = b.queue[1:]
			b.bytes -= len(r.f.body)
			b.mu.Unlock()
			return r, true
		}
		b.mu.Unlock()
		select {
		case <-b.wake:
		case <-b.g.closing:
			return request{}, false
		}
	}
}

// loop works until the group closes; what waits then is refused.
func (b *inbox) loop() {
	for {
		r, ok := b.next()
		if !ok {
			break
		}
		if r.install != nil {
			b.handleInstall(r)
		} else if r.c.over.Load() {
			continue
		} else if body, err := b.handle(r); err != nil {
			r.c.refuse(r.f, err)
		} else {
			r.c.answer(r.f, frameOK, body)
		}
	}
	b.mu.Lock()
	b.closed = true
	rest := b.queue
	b.queue = nil
	b.mu.Unlock()
	for _, r := range rest {
		r.c.refuse(r.f, errAbsent)
	}
}

func (b *inbox) handle(r request) ([]byte, error) {
	switch r.f.kind {
	case frameAppend:
		a, err := decodeAppend(r.f.body, r.c.name)
		if err != nil {
			return nil, err
		}
		answer, err := b.ask(raft.RPC{Command: a}, nil)
		if said, ok := answer.(*raft.AppendEntriesResponse); ok {
			return encodeAppended(said), err
		}
		return nil, orUnexpected(err)
	case frameVote, framePreVote:
		v, err := decodeVote(r.f.body, r.c.name)
		if err != nil {
			return nil, err
		}
		if r.f.kind == framePreVote {
			answer, err := b.ask(raft.RPC{Command: &raft.RequestPreVoteRequest{
				RPCHeader: v.RPCHeader, Term: v.Term, LastLogIndex: v.LastLogIndex, LastLogTerm: v.LastLogTerm,
			}}, nil)
			if said, ok := answer.(*raft.RequestPreVoteResponse); ok {
				return encodeSaid(said.Term, said.Granted), err
			}
			return nil, orUnexpected(err)
		}
		answer, err := b.ask(raft.RPC{Command: v}, nil)
		if said, ok := answer.(*raft.RequestVoteResponse); ok {
			return encodeSaid(said.Term, said.Granted), err
		}
		return nil, orUnexpected(err)
	case frameTimeoutNow:
		if !b.g.mayLead() { // raft itself would stand for election whoever it is
			return nil, ErrNotVoter
		}
		_, err := b.ask(raft.RPC{Command: &raft.TimeoutNowRequest{RPCHeader: header(r.c.name)}}, nil)
		return nil, err
	default:
		return nil, errFrame
	}
}

func orUnexpected(err error) error {
	if err == nil {
		err = errFrame
	}
	return err
}

// ask has raft's main loop handle a request. It waits as long as that takes, for
// raft handles one at a time; meanwhile is called every progressEvery (nil: nothing is).
func (b *inbox) ask(rpc raft.RPC, meanwhile func()) (any, error) {
	answers := make(chan raft.RPCResponse, 1)
	rpc.RespChan = answers
	var tick <-chan time.Time
	if meanwhile != nil {
		ticker := time.NewTicker(progressEvery)
		defer ticker.Stop()
		tick = ticker.C
	}
	give := b.g.trans.incoming
	for {
		select {
		case give <- rpc:
			give = nil
		case a := <-answers:
			return a.Response, a.Error
		case <-tick:
			meanwhile()
		case <-b.g.closing:
			return nil, ErrClosed
		}
	}
}

// handleInstall has raft install a snapshot. One that this replica is past already is
// only confirmed: raft would go back to it, and forget entries that others count on.
func (b *inbox) handleInstall(r request) {
	if !slices.ContainsFunc(b.asking(r.install), func(asks request) bool { return !asks.c.over.Load() }) {
		b.finishInstall(r.install)
		return // who asked asks again, for a newer one perhaps
	}
	term, done := r.install.term, true
	i, manifest, err := decodeInstall(r.f.body, r.c.name)
	if err == nil && (i.LastLogIndex > b.g.raft.AppliedIndex() || i.Term < b.g.raft.CurrentTerm()) {
		began := time.Now()
		b.g.installing(r.install)
		var answer any
		answer, err = b.ask(raft.RPC{Command: i, Reader: bytes.NewReader(manifest)}, func() {
			for _, asks := range b.asking(r.install) {
				asks.c.answer(asks.f, frameProgress, nil)
			}
		})
		if said, ok := answer.(*raft.InstallSnapshotResponse); ok && err == nil {
			term, done = said.Term, said.Success
		} else {
			err = orUnexpected(err)
		}
		b.g.installed(i.LastLogIndex, time.Since(began), err)
	}
	for _, asks := range b.finishInstall(r.install) {
		if err != nil {
			asks.c.refuse(asks.f, err)
		} else {
			asks.c.answer(asks.f, frameOK, encodeSaid(term, done))
		}
	}
}

// finishInstall has the next one be another, and returns who waits for this one.
func (b *inbox) finishInstall(i *install) []request {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.install == i {
		b.install = nil
	}
	return i.asking
}

func (b *inbox) asking(i *install) []request {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]request(nil), i.asking...)
}
