package quorum

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// pipelineDepth is how many requests with entries may be under way to one follower. More
// would not be faster: what waits meanwhile goes into fewer and larger ones.
const pipelineDepth = 3

// AppendEntriesPipeline implements raft.Transport.
func (t *transport) AppendEntriesPipeline(id raft.ServerID, addr raft.ServerAddress) (raft.AppendPipeline, error) {
	l, err := t.link(addr)
	if err != nil {
		return nil, err
	}
	p := &pipeline{
		t: t, link: l, id: id,
		flying: make(chan *appended, pipelineDepth),
		landed: make(chan raft.AppendFuture),
		closed: make(chan struct{}),
		broken: make(chan struct{}),
	}
	if !t.g.run(p.loop) {
		return nil, ErrClosed
	}
	return p, nil
}

// pipeline is a series of requests with entries to one follower, answered in order.
type pipeline struct {
	t      *transport
	link   *link
	id     raft.ServerID
	flying chan *appended
	landed chan raft.AppendFuture
	closed chan struct{}
	broken chan struct{} // closed when raft has got an answer after which it takes no more
	once   sync.Once
}

// appended is a request with its answer, a raft.AppendFuture.
type appended struct {
	start time.Time
	args  *raft.AppendEntriesRequest
	resp  *raft.AppendEntriesResponse
	sent  entriesSent
	err   error
}

func (a *appended) Error() error                          { return a.err }
func (a *appended) Start() time.Time                      { return a.start }
func (a *appended) Request() *raft.AppendEntriesRequest   { return a.args }
func (a *appended) Response() *raft.AppendEntriesResponse { return a.resp }

// AppendEntries implements raft.AppendPipeline. It waits while too many are under way.
func (p *pipeline) AppendEntries(args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	if p.t.g.muted() {
		return nil, errMuted
	}
	a := &appended{start: time.Now(), args: args, resp: resp}
	var err error
	if a.sent, err = p.t.sendEntries(p.link, p.id, args); err != nil {
		return nil, err
	}
	select {
	case p.flying <- a:
		return a, nil
	case <-p.broken:
	case <-p.closed:
	case <-p.t.g.closing:
	}
	a.sent.cancel()
	return nil, ErrClosed
}

// Consumer implements raft.AppendPipeline.
func (p *pipeline) Consumer() <-chan raft.AppendFuture { return p.landed }

// Close implements raft.AppendPipeline.
func (p *pipeline) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// loop waits for one answer after the other. After one that is no success raft
// listens no more, but may yet send: it must not wait then for room that nobody makes.
func (p *pipeline) loop() {
	defer close(p.broken)
	for {
		var a *appended
		select {
		case a = <-p.flying:
		case <-p.closed:
			return
		case <-p.t.g.closing:
			return
		}
		// An error leaves the answer empty, which raft takes for a refusal.
		a.err = p.t.await(a.sent, a.resp)
		select {
		case p.landed <- a:
		case <-p.closed:
			return
		case <-p.t.g.closing:
			return
		}
		if a.err != nil || !a.resp.Success {
			return
		}
	}
}
