package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"felix.dev/felix/broker/catalog"
	"felix.dev/felix/broker/peer"
)

// Changes from every broker while the metadata leader is killed: each that is
// answered is there, once, and each that is not says so.
func TestChangesOverALeadersDeath(t *testing.T) {
	w := newTown(t)
	all := w.found(3)
	leader, _ := all[0].cluster.metadataLeader()
	var alive []*house
	var dies *house
	for _, h := range all {
		if h.node == leader {
			dies = h
		} else {
			alive = append(alive, h)
		}
	}
	type outcome struct {
		name catalog.Name
		r    catalog.Result
		err  error
	}
	const each = 20
	outcomes := make(chan outcome, each*len(alive))
	half := make(chan struct{})
	var wg sync.WaitGroup
	for i, h := range alive {
		wg.Go(func() {
			for n := range each {
				if i == 0 && n == each/2 {
					close(half)
				}
				name := catalog.Name{Tenant: "t", Namespace: h.node, Stream: fmt.Sprint("s", n)}
				r, err := h.cluster.Propose(t.Context(), catalog.CreateStream{
					Spec: catalog.StreamSpec{Name: name, Durability: catalog.Memory}, Incarnation: fmt.Sprintf("%032x", i*each+n),
					Places: []catalog.ShardPlace{{Owner: h.node}},
				})
				if err == nil && r.Err == nil { // a stream that is there when its change is answered
					_, err = h.cluster.State().Get(name)
				}
				outcomes <- outcome{name, r, err}
			}
		})
	}
	<-half
	dies.kill()
	wg.Wait()
	close(outcomes)
	for o := range outcomes {
		switch {
		case errors.Is(o.err, ErrOutcomeUnknown), errors.Is(o.err, ErrNoLeader):
		case o.err != nil, o.r.Err != nil, !o.r.Created:
			t.Errorf("%v: %+v, %v", o.name, o.r, o.err)
		default:
			if _, err := alive[0].cluster.State().Get(o.name); err != nil {
				w.until("it is everywhere", func() error {
					_, err := alive[0].cluster.State().Get(o.name)
					return err
				})
			}
		}
	}
	dies.must()
	w.whole(all...)
}

func TestSync(t *testing.T) {
	w := newTown(t)
	all := w.found(3)
	for i := range 10 {
		n := 100 + i
		if _, err := all[i%3].cluster.Propose(t.Context(), catalog.SetSettings{Settings: catalog.Settings{MaxStreams: n}}); err != nil {
			t.Fatal(err)
		}
		other := all[(i+1)%3].cluster
		if err := other.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := other.State().Settings().MaxStreams; got != n {
			t.Errorf("got %d, want %d", got, n)
		}
	}
}

func TestErrorsTravel(t *testing.T) {
	for _, code := range []Code{
		CodeNoLeader, CodeOutcomeUnknown, CodeBusy, CodeClosed, CodeNotFound, CodeInvalid, CodeRefused, CodeForeign, CodeTaken, CodeRemoved,
		CodeVersion, CodeDamaged,
	} {
		e := &Error{Code: code, Message: "so", Retry: true}
		told := incoming(outgoing(fmt.Errorf("at: %w", e)))
		if !errors.Is(told, &Error{Code: code}) || final(told) || told.Error() != "cluster: so" {
			t.Errorf("%s became %v", code, told)
		}
	}
	for _, err := range []error{context.Canceled, &peer.Error{Code: peer.CodeTimeout}, nil} {
		if got := incoming(outgoing(err)); !errors.Is(got, err) {
			t.Errorf("%v became %v", err, got)
		}
	}
}

func TestMaybeDone(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want bool
	}{
		{fmt.Errorf("call: %w", peer.ErrUnreachable), false},
		{fmt.Errorf("call: %w", peer.ErrUnanswered), true},
		{&peer.RefusedError{Reason: peer.RefusedCluster}, false},
		{&peer.Error{Code: peer.CodeUnknownMethod, Retry: true}, false},
		{&peer.Error{Code: peer.CodeTimeout}, true},
		{&peer.Error{Code: peer.CodeInternal}, true},
		{later(CodeNoLeader, "no"), false},
		{later(CodeOutcomeUnknown, "hm"), true},
	} {
		if got := maybeDone(tc.err); got != tc.want {
			t.Errorf("%v: got %v", tc.err, got)
		}
	}
}

func TestConfigIsChecked(t *testing.T) {
	var c Config
	c.Timings.Retry = -time.Second
	err := c.Validate()
	if err == nil {
		t.Fatal("an empty configuration is fine")
	}
	for _, part := range []string{"node id", "want a book", "negative"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is missing in %v", part, err)
		}
	}
}
