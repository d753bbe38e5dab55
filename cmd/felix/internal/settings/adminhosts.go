package settings

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
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

// anyBroker sends requests to the first of a cluster's brokers that can be reached: what is asked of one is answered by the
// cluster. A request that was sent is not sent again.
type anyBroker struct {
	*http.Transport

	brokers []*url.URL
	// good is the index of the one that was reached last.
	good atomic.Int64
}

func newAnyBroker(t *http.Transport, urls []string) (*anyBroker, error) {
	a := &anyBroker{Transport: t}
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
		answer, err := a.Transport.RoundTrip(try)
		if err == nil {
			a.good.Store(int64(i))
			return answer, nil
		}
		errs = append(errs, err)
		if !unreached(err) || r.Context().Err() != nil || r.Body != nil && r.GetBody == nil {
			break
		}
	}
	slices.Reverse(errs) // the one that was asked last decides what it is
	return nil, errors.Join(errs...)
}

// unreached says that nothing was sent.
func unreached(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}
