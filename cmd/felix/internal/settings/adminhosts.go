package settings

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// adminURLs reads one or more admin addresses, separated by commas.
func adminURLs(value string) ([]string, error) {
	var urls []string
	for addr := range strings.SplitSeq(value, ",") {
		if addr = strings.TrimSpace(addr); addr == "" {
			continue
		}
		if !strings.Contains(addr, "://") {
			addr = "http://" + addr
		}
		if _, err := url.Parse(addr); err != nil {
			return nil, err
		}
		urls = append(urls, strings.TrimSuffix(addr, "/"))
	}
	if len(urls) == 0 {
		return nil, errors.New("there is none")
	}
	return urls, nil
}

// patience is how long a broker may take to answer a question that another one can answer, too. A broker puts together what
// the others say within a second or two.
const patience = 4 * time.Second

// errSilent says that a broker took a connection and did not answer: its process is stopped, or hangs.
var errSilent = errors.New("it does not answer")

// anyBroker sends requests to the first of a cluster's brokers that can be reached: what is asked of one is answered by the
// cluster. A request that was sent is not sent again, unless all that it does is ask.
type anyBroker struct {
	*http.Transport

	brokers  []*url.URL
	patience time.Duration
	// good is the index of the one that was reached last.
	good atomic.Int64
}

func newAnyBroker(t *http.Transport, urls []string) (*anyBroker, error) {
	a := &anyBroker{Transport: t, patience: patience}
	for _, u := range urls {
		parsed, err := url.Parse(u)
		if err != nil {
			return nil, err
		}
		a.brokers = append(a.brokers, parsed)
	}
	return a, nil
}

// RoundTrip implements http.RoundTripper.
func (a *anyBroker) RoundTrip(r *http.Request) (*http.Response, error) {
	first := int(a.good.Load())
	var errs []error
	for n := range a.brokers {
		i := (first + n) % len(a.brokers)
		try := r.Clone(r.Context())
		try.URL.Scheme, try.URL.Host, try.Host = a.brokers[i].Scheme, a.brokers[i].Host, a.brokers[i].Host
		if n > 0 && r.GetBody != nil {
			var err error
			if try.Body, err = r.GetBody(); err != nil {
				return nil, err
			}
		}
		answer, err := a.try(try, n < len(a.brokers)-1)
		if err == nil {
			a.good.Store(int64(i))
			return answer, nil
		}
		errs = append(errs, err)
		if !unreached(err) && !errors.Is(err, errSilent) || r.Context().Err() != nil || r.Body != nil && r.GetBody == nil {
			break
		}
	}
	slices.Reverse(errs) // the one that was asked last decides what it is
	return nil, errors.Join(errs...)
}

// try asks one broker. If there are others to ask it need not be waited for until the context ends.
func (a *anyBroker) try(r *http.Request, others bool) (*http.Response, error) {
	if r.Method != http.MethodGet || !others {
		return a.Transport.RoundTrip(r)
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	timer := time.AfterFunc(a.patience, func() { cancel(errSilent) })
	answer, err := a.Transport.RoundTrip(r.WithContext(ctx))
	if timer.Stop(); err != nil {
		if errors.Is(context.Cause(ctx), errSilent) {
			err = fmt.Errorf("%s: %w within %v", r.URL.Host, errSilent, a.patience)
		}
		cancel(nil)
		return nil, err
	}
	answer.Body = &endingBody{answer.Body, func() { cancel(nil) }}
	return answer, nil
}

// endingBody is the body of an answer, with the context that has to live as long.
type endingBody struct {
	io.ReadCloser

	end func()
}

func (b *endingBody) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}

// unreached says that nothing was sent.
func unreached(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}
