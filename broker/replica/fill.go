package replica

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"felix.dev/felix/broker/seglog"
	"felix.dev/felix/broker/wire"
)

const (
	// fetchTimeout is how long a broker may take for one page.
	fetchTimeout = 30 * time.Second
	// fetchProgress is how often it is said how far it is.
	fetchProgress = 5 * time.Second
)

// errNoRecords says that a broker was asked in vain.
var errNoRecords = errors.New("replica: fetch: that broker does not have the records")

// filling fetches what a shard's log lacks, page by page. Records that were committed
// are the same on every broker, so that any may be asked. The caller holds the shard's mu.
type filling struct {
	s       *shard
	upTo    uint64 // the log is to reach there
	oldest  uint64 // below it nothing is needed
	rebuild bool   // what the log holds is not to be trusted
	peers   []string
	// applied is an entry that the shard was there after. Who is as far and does not have it
	// has dropped it since; who is not may not have it yet. 0: as far as this broker is.
	applied uint64

	bytes  int64
	resets int
	buf    []byte
}

// run asks one broker after another. What it has fetched stays if it fails.
func (f *filling) run(ctx context.Context) error {
	if f.applied == 0 {
		f.applied = f.s.g.begun.Load()
	}
	if err := f.prepare(); err != nil {
		return err
	}
	if !f.rebuild && f.done() {
		return nil
	}
	err := errNoRecords
	for _, node := range f.peers {
		if err = f.from(ctx, node); err == nil {
			return nil
		}
		err = fmt.Errorf("from %s: %w", node, err)
		if ctx.Err() != nil || f.s.gone.Load() {
			break
		}
	}
	return err
}

// prepare has the log take records again, as far as that can be done here.
func (f *filling) prepare() error {
	err := f.s.log.Err()
	if errors.Is(err, seglog.ErrPoisoned) || errors.Is(err, seglog.ErrClosed) {
		if err := f.s.anew(f.s.log.reopen); err != nil {
			return err
		}
		err = f.s.log.Err()
	}
	if _, damaged := errors.AsType[*seglog.CorruptionError](err); damaged {
		f.rebuild = true
	}
	return nil
}

func (f *filling) done() bool { return f.s.log.Next() >= f.upTo && f.s.log.Err() == nil }

// from fetches from one broker until nothing is lacking.
func (f *filling) from(ctx context.Context, node string) error {
	g := f.s.g
	dial, cancel := context.WithTimeout(ctx, fetchTimeout)
	c, err := g.cfg.Dial(dial, node)
	cancel()
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // nothing is owed to it
	unhook := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Now()) })
	defer unhook()
	told := time.Now()
	for !f.s.gone.Load() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		before, anew := f.s.log.Next(), f.resets
		if err := f.step(ctx, c); err != nil {
			return err
		}
		if f.s.log.Next() == before && f.resets == anew && !f.done() {
			return errNoRecords
		}
		if f.done() {
			if f.bytes > 0 {
				g.cfg.Log.Info("fetched what was missing", "shard", f.s.key, "from", node, "bytes", f.bytes, "offset", f.s.log.Next())
			}
			return nil
		}
		if time.Since(told) >= fetchProgress {
			told = time.Now()
			g.cfg.Log.Info("fetching what is missing", "shard", f.s.key, "from", node, "bytes", f.bytes, "offset", f.s.log.Next(), "of", f.upTo)
		}
	}
	return ErrNoShard
}

// step asks for one page and appends it.
func (f *filling) step(ctx context.Context, c net.Conn) error {
	log := f.s.log
	at := max(log.Next(), f.oldest)
	if f.rebuild {
		at = f.oldest
	}
	q := request{f.s.g.cfg.Group, f.s.key, at, uint32(f.s.g.cfg.FetchBytes)}
	b, err := q.append(nil)
	if err != nil {
		return err
	}
	if err := c.SetDeadline(time.Now().Add(fetchTimeout)); err != nil || ctx.Err() != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	if _, err := c.Write(b); err != nil {
		return err
	}
	var p page
	if p, f.buf, err = readPage(c, f.buf); err != nil {
		return err
	}
	switch p.status {
	case statusNoShard:
		if f.applied == 0 || p.next < f.applied {
			return errNoRecords
		}
		return f.reset(f.upTo) // an entry to come removes it
	case statusTooOld:
		if p.oldest <= at || p.next < f.upTo {
			return errNoRecords
		}
		return f.reset(p.oldest)
	case statusOK:
	default:
		return errNoRecords
	}
	if p.next < f.upTo || len(p.records) == 0 && at < f.upTo {
		return errNoRecords // it is behind itself
	}
	if f.rebuild || log.Next() < f.oldest {
		if err := f.reset(at); err != nil {
			return err
		}
	}
	return f.append(p.records)
}

// reset has the log begin anew: the broker that is asked has what comes.
func (f *filling) reset(base uint64) error {
	log := f.s.log
	if err := f.s.anew(func() error {
		err := log.Reset(base)
		if _, damaged := errors.AsType[*seglog.CorruptionError](err); damaged { // it takes nothing at all
			if err = log.again(func() error { return f.s.g.cfg.RemoveLog(f.s.key) }); err == nil {
				err = log.Reset(base)
			}
		}
		return err
	}); err != nil {
		return fmt.Errorf("begin the log anew at offset %d: %w", base, err)
	}
	f.resets++
	f.rebuild, f.oldest = false, max(f.oldest, base)
	return nil
}

// append writes the records that the log does not have.
func (f *filling) append(records []seglog.Record) error {
	have := f.s.log.Next()
	for len(records) > 0 && records[0].Base+uint64(records[0].Count) <= have {
		records = records[1:]
	}
	if len(records) == 0 {
		return nil
	}
	if r := &records[0]; r.Base < have {
		rest, err := wire.AppendFrom(nil, r.Frame, have)
		if err != nil {
			return fmt.Errorf("%w: %w", errFetchProtocol, err)
		}
		r.Count -= uint32(have - r.Base)
		r.Base, r.Frame, r.HasProducer = have, rest, false
	}
	n := 0
	for _, r := range records {
		n += len(r.Frame)
	}
	f.bytes += int64(n)
	f.s.g.cfg.Metrics.Fetched(n)
	return f.s.log.Append(records)
}
