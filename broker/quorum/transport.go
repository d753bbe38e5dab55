package quorum

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// errMuted is what raft gets for requests while the group is stuck: nobody shall take
// this server for a leader, or a candidate, that can do its work.
var errMuted = errors.New("quorum: muted, for the group is stuck here")

const (
	// requestBytes bounds the entries of one request, but for a single larger one.
	requestBytes = 1 << 20
	// appendTimeout bounds the wait for a follower's disk. Others do not wait with it.
	appendTimeout = 10 * time.Second
)

// transport is one group's raft.Transport over the node's links.
type transport struct {
	g        *Group
	incoming chan raft.RPC
	self     []byte

	mu        sync.Mutex
	heartbeat func(raft.RPC)

	progress progress
}

var (
	_ raft.Transport   = (*transport)(nil)
	_ raft.WithPreVote = (*transport)(nil)
)

func newTransport(g *Group) *transport {
	return &transport{
		g: g, incoming: make(chan raft.RPC), self: []byte(g.n.cfg.Self.String()),
		progress: progress{of: map[raft.ServerID]follower{}},
	}
}

// Consumer implements raft.Transport, as do all the exported methods.
func (t *transport) Consumer() <-chan raft.RPC     { return t.incoming }
func (t *transport) LocalAddr() raft.ServerAddress { return raft.ServerAddress(t.self) }
func (t *transport) EncodePeer(_ raft.ServerID, addr raft.ServerAddress) []byte {
	return []byte(addr)
}
func (t *transport) DecodePeer(b []byte) raft.ServerAddress { return raft.ServerAddress(b) }

// SetHeartbeatHandler is given what heartbeats bypass the queue of other requests with.
func (t *transport) SetHeartbeatHandler(h func(raft.RPC)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.heartbeat = h
}

func (t *transport) beat(rpc raft.RPC) {
	t.mu.Lock()
	h := t.heartbeat
	t.mu.Unlock()
	if h != nil {
		h(rpc)
	}
}

// link is the way to a server, unless the group may not speak.
func (t *transport) link(addr raft.ServerAddress) (*link, error) {
	if t.g.muted() {
		return nil, errMuted
	}
	select {
	case <-t.g.closing:
		return nil, ErrClosed
	default:
	}
	to, err := ParseServer(string(addr))
	if err != nil {
		return nil, err
	}
	return t.g.n.linkTo(to), nil
}

// AppendEntries sends a heartbeat or entries; of those only as many as one request may
// carry: raft sees from args how many went.
func (t *transport) AppendEntries(id raft.ServerID, addr raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	l, err := t.link(addr)
	if err != nil {
		return err
	}
	if args.PrevLogEntry == 0 && args.PrevLogTerm == 0 && len(args.Entries) == 0 && args.LeaderCommitIndex == 0 {
		a := l.beats.send(t.g.id, args.Term, t, t.g.closing)
		if a.err == nil {
			*resp = raft.AppendEntriesResponse{
				RPCHeader: header(l.name), Term: a.term, LastLog: a.last,
				Success: a.flags&flagSuccess != 0, NoRetryBackoff: a.flags&flagNoBackoff != 0,
			}
		}
		return a.err
	}
	return t.insist(id, args.Term, func() error {
		sent, err := t.sendEntries(l, id, args)
		if err != nil {
			return err
		}
		return t.await(sent, resp)
	})
}

// insist repeats a request until the follower answers it, whatever it says, for as long
// as this server leads and the follower belongs: raft itself waits longer after each
// failure, up to ten seconds, also when the follower has been back for nine (B80).
func (t *transport) insist(id raft.ServerID, term uint64, ask func() error) error {
	for {
		err := ask()
		if err == nil || !absent(err) || !t.leads(term) || !t.belongs(id) {
			return err
		}
		timer := time.NewTimer(retryAfter)
		select {
		case <-timer.C:
		case <-t.g.closing:
			timer.Stop()
			return err
		}
	}
}

// leads tells whether this server leads in a term, and may say so.
func (t *transport) leads(term uint64) bool {
	return t.g.raft.State() == raft.Leader && t.g.raft.CurrentTerm() == term && !t.g.muted()
}

// belongs tells whether a server is a member.
func (t *transport) belongs(id raft.ServerID) bool {
	return slices.ContainsFunc(t.g.raft.GetConfiguration().Configuration().Servers, func(s raft.Server) bool { return s.ID == id })
}

// entriesSent is a request with entries on its way.
type entriesSent struct {
	answer chan entriesAnswer // has room for the one that comes, or never comes
	cancel func()
	lane   *lane
}

type entriesAnswer struct {
	said raft.AppendEntriesResponse
	err  error
}

func (t *transport) sendEntries(l *link, id raft.ServerID, args *raft.AppendEntriesRequest) (entriesSent, error) {
	parts, err := t.encodeAppend(args)
	if err != nil {
		return entriesSent{}, err
	}
	answer := make(chan entriesAnswer, 1)
	match, term := args.PrevLogEntry+uint64(len(args.Entries)), args.Term
	t.progress.tell(id, term, args.LeaderCommitIndex)
	cancel, err := l.lanes[laneData].start(t.g.n.cfg.Timings.Heartbeat, frameAppend, t.g.id, &call{done: func(f frame, err error) {
		var said raft.AppendEntriesResponse
		if err == nil {
			err = decodeAppended(f.body, l.name, &said)
		}
		if err == nil && said.Success {
			t.progress.matched(id, term, match)
		} else {
			t.progress.untell(id, term)
		}
		answer <- entriesAnswer{said: said, err: err}
	}}, parts...)
	return entriesSent{answer: answer, cancel: cancel, lane: &l.lanes[laneData]}, err
}

// await waits for the answer, not longer than it may take, and gives it to resp.
func (t *transport) await(sent entriesSent, resp *raft.AppendEntriesResponse) error {
	timer := time.NewTimer(appendTimeout)
	defer timer.Stop()
	select {
	case a := <-sent.answer:
		if a.err == nil {
			*resp = a.said
		}
		return a.err
	case <-t.g.closing:
		sent.cancel()
		return ErrClosed
	case <-timer.C:
		sent.cancel()
		sent.lane.suspect()
		return errTimeout
	}
}

// encodeAppend makes a request's body in parts, loading the data of entries, and
// leaves in args only those that it took.
func (t *transport) encodeAppend(args *raft.AppendEntriesRequest) ([][]byte, error) {
	parts := make([][]byte, 1, 1+2*len(args.Entries))
	size := 0
	for i, e := range args.Entries {
		if e.Term == 0 { // buried: see logStore
			return nil, raft.ErrLogNotFound
		}
		data := e.Data
		if len(data) == 0 && e.Type == raft.LogCommand {
			var err error
			if data, err = t.g.log.load(e.Index, e.Term); err != nil {
				return nil, err
			}
		}
		if size += len(data); i > 0 && size > requestBytes {
			args.Entries = args.Entries[:i]
			break
		}
		parts = append(parts, appendEntryHead(make([]byte, 0, 24), e, len(data)), data)
	}
	parts[0] = appendHead(nil, args)
	return parts, nil
}

// RequestVote implements raft.Transport.
func (t *transport) RequestVote(_ raft.ServerID, addr raft.ServerAddress, args *raft.RequestVoteRequest, resp *raft.RequestVoteResponse) error {
	term, yes, from, err := t.askVote(frameVote, addr, encodeVote(args.Term, args.LastLogIndex, args.LastLogTerm, args.LeadershipTransfer))
	if err == nil {
		*resp = raft.RequestVoteResponse{RPCHeader: header(from), Term: term, Granted: yes}
	}
	return err
}

// RequestPreVote implements raft.WithPreVote.
func (t *transport) RequestPreVote(_ raft.ServerID, addr raft.ServerAddress, args *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse) error {
	term, yes, from, err := t.askVote(framePreVote, addr, encodeVote(args.Term, args.LastLogIndex, args.LastLogTerm, false))
	if err == nil {
		*resp = raft.RequestPreVoteResponse{RPCHeader: header(from), Term: term, Granted: yes}
	}
	return err
}

func (t *transport) askVote(kind frameKind, addr raft.ServerAddress, body []byte) (term uint64, yes bool, from []byte, err error) {
	if t.g.log.torn() {
		return 0, false, nil, errMuted
	}
	l, err := t.link(addr)
	if err != nil {
		return 0, false, nil, err
	}
	f, err := l.lanes[laneControl].ask(2*t.g.n.cfg.Timings.Election, kind, t.g.id, body)
	if err != nil {
		return 0, false, nil, err
	}
	term, yes, err = decodeSaid(f.body)
	return term, yes, l.name, err
}

// TimeoutNow has a voter stand for election at once.
func (t *transport) TimeoutNow(_ raft.ServerID, addr raft.ServerAddress, _ *raft.TimeoutNowRequest, resp *raft.TimeoutNowResponse) error {
	l, err := t.link(addr)
	if err != nil {
		return err
	}
	_, err = l.lanes[laneControl].ask(2*t.g.n.cfg.Timings.Election, frameTimeoutNow, t.g.id)
	if err == nil {
		resp.RPCHeader = header(l.name)
	}
	return err
}
