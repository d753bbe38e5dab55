package quorum

import (
	"fmt"
	"io"
	"time"

	"github.com/hashicorp/raft"
)

// installSilence is how long an install may go on without a word of progress.
const installSilence = 15 * time.Second

// InstallSnapshot sends a manifest and waits for as long as the follower makes progress:
// it fetches what it lacks meanwhile. The entries after the snapshot are kept for it.
func (t *transport) InstallSnapshot(id raft.ServerID, addr raft.ServerAddress, args *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse, manifest io.Reader) error {
	l, err := t.link(addr)
	if err != nil {
		return err
	}
	data, err := io.ReadAll(io.LimitReader(manifest, maxManifestBytes+1))
	if err != nil {
		return err
	}
	if int64(len(data)) != args.Size {
		return fmt.Errorf("quorum: snapshot has %d bytes, not %d", len(data), args.Size)
	}
	t.g.log.hold(string(id), args.LastLogIndex)
	defer t.g.log.letGo(string(id))
	return t.insist(id, args.Term, func() error { return t.sendInstall(l, id, args, resp, data) })
}

func (t *transport) sendInstall(l *link, id raft.ServerID, args *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse, manifest []byte) error {
	done := make(chan error, 1)
	alive := make(chan struct{}, 1)
	var said raft.InstallSnapshotResponse
	cancel, err := l.lanes[laneData].start(t.g.n.cfg.Timings.Heartbeat, frameInstall, t.g.id, &call{
		done: func(f frame, err error) {
			if err == nil {
				said.Term, said.Success, err = decodeSaid(f.body)
			}
			done <- err
		},
		progress: func() {
			select {
			case alive <- struct{}{}:
			default: // it is known
			}
		},
	}, encodeInstall(args), manifest)
	if err != nil {
		return err
	}
	silent := time.NewTimer(installSilence)
	defer silent.Stop()
	for {
		select {
		case err := <-done:
			if err == nil {
				said.RPCHeader = header(l.name)
				*resp = said
				t.progress.matched(id, args.Term, args.LastLogIndex)
			}
			return err
		case <-alive:
			t.g.log.hold(string(id), args.LastLogIndex)
			silent.Reset(installSilence)
		case <-silent.C:
			cancel()
			l.lanes[laneData].suspect()
			return errTimeout
		case <-t.g.closing:
			cancel()
			return ErrClosed
		}
	}
}
