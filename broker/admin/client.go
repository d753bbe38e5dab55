package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// Client speaks to a broker's admin port. Its fields must not be changed while it
// is in use.
type Client struct {
	// BaseURL is scheme, host and port: "https://felix-0.felix:8443".
	BaseURL string
	// Token is the bearer token. Readiness and liveness need none.
	Token string
	// HTTP does the requests. Nil: http.DefaultClient; contexts bound the time.
	HTTP *http.Client
}

// maxAnswer bounds what is read of an answer.
const maxAnswer = 64 << 20

// CreateStream makes a stream, or finds that it is there because of the same
// request id or with the same settings. It can be retried.
func (c *Client) CreateStream(ctx context.Context, spec StreamSpec, requestID string) (st Stream, created bool, err error) {
	status, err := c.do(ctx, http.MethodPost, "/v1/streams", nil, CreateRequest{RequestID: requestID, Spec: spec}, &st)
	return st, status == http.StatusCreated, err
}

// Stream returns one stream.
func (c *Client) Stream(ctx context.Context, name Name) (Stream, error) {
	var st Stream
	_, err := c.do(ctx, http.MethodGet, streamPath(name), nil, nil, &st)
	return st, err
}

// Streams returns all streams that the token's owner may see, or those of one
// tenant, or of one namespace.
func (c *Client) Streams(ctx context.Context, tenant, namespace string) ([]Stream, error) {
	var all []Stream
	q := url.Values{}
	for key, v := range map[string]string{"tenant": tenant, "namespace": namespace} {
		if v != "" {
			q.Set(key, v)
		}
	}
	for {
		var page StreamList
		if _, err := c.do(ctx, http.MethodGet, "/v1/streams", q, nil, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Streams...)
		if page.Next == "" || page.Next == q.Get("after") {
			return all, nil
		}
		q.Set("after", page.Next)
	}
}

// UpdateStream changes settings of a stream.
func (c *Client) UpdateStream(ctx context.Context, name Name, change StreamChange) (Stream, error) {
	var st Stream
	_, err := c.do(ctx, http.MethodPatch, streamPath(name), nil, change, &st)
	return st, err
}

// DeleteStream removes a stream and its records.
func (c *Client) DeleteStream(ctx context.Context, name Name) error {
	_, err := c.do(ctx, http.MethodDelete, streamPath(name), nil, nil, nil)
	return err
}

// SubscriptionQuery chooses and orders subscriptions. Zero: all that the token's
// owner may see, by id.
type SubscriptionQuery struct {
	Stream Name   // zero: of all streams
	Sort   string // SortID, SortLag, SortDropped
	Limit  int    // 0: as many as the broker gives
}

// Subscriptions returns readers, and how many there are in all.
func (c *Client) Subscriptions(ctx context.Context, query SubscriptionQuery) (SubscriptionList, error) {
	q := url.Values{}
	if query.Stream != (Name{}) {
		q.Set("stream", query.Stream.String())
	}
	if query.Sort != "" {
		q.Set("sort", query.Sort)
	}
	if query.Limit != 0 {
		q.Set("limit", strconv.Itoa(query.Limit))
	}
	var list SubscriptionList
	_, err := c.do(ctx, http.MethodGet, "/v1/subscriptions", q, nil, &list)
	return list, err
}

// EndSubscription ends one reader; its connection lives on.
func (c *Client) EndSubscription(ctx context.Context, id uint64) error {
	_, err := c.do(ctx, http.MethodDelete, "/v1/subscriptions/"+strconv.FormatUint(id, 10), nil, nil, nil)
	return err
}

// Readiness returns what readiness depends on. A broker that is not ready is not
// an error.
func (c *Client) Readiness(ctx context.Context) (Readiness, error) {
	var out Readiness
	err := c.health(ctx, "/readyz", &out)
	return out, err
}

// Live returns an error when the broker does not answer or should be restarted.
func (c *Client) Live(ctx context.Context) error {
	var check Check
	if err := c.health(ctx, "/healthz", &check); err != nil {
		return err
	}
	if !check.Ready {
		return fmt.Errorf("admin: broker is not live: %s", check.Message)
	}
	return nil
}

// health reads an answer that has the same form whether it is good or bad news.
func (c *Client) health(ctx context.Context, path string, out any) error {
	resp, err := c.send(ctx, http.MethodGet, path, nil, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusServiceUnavailable {
		return answerError(resp)
	}
	return readAnswer(resp, out)
}

func streamPath(n Name) string {
	return "/v1/streams/" + url.PathEscape(n.Tenant) + "/" + url.PathEscape(n.Namespace) + "/" + url.PathEscape(n.Stream)
}

// do sends a request and reads the answer into out, unless it is nil.
func (c *Client) do(ctx context.Context, method, path string, q url.Values, in, out any) (status int, err error) {
	resp, err := c.send(ctx, method, path, q, in)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return resp.StatusCode, answerError(resp)
	}
	if out == nil {
		return resp.StatusCode, nil
	}
	return resp.StatusCode, readAnswer(resp, out)
}

func (c *Client) send(ctx context.Context, method, path string, q url.Values, in any) (*http.Response, error) {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return nil, fmt.Errorf("admin: encode request: %w", err)
		}
		body = bytes.NewReader(data)
	}
	address := strings.TrimSuffix(c.BaseURL, "/") + path
	if len(q) > 0 {
		address += "?" + q.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return nil, fmt.Errorf("admin: make request: %w", err)
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.Token)
	}
	httpClient := c.HTTP
	if httpClient == nil {
		httpClient = http.DefaultClient
	}
	resp, err := httpClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("admin: %w", err)
	}
	return resp, nil
}

func readAnswer(resp *http.Response, out any) error {
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(out); err != nil {
		return fmt.Errorf("admin: read answer: %w", err)
	}
	return nil
}

// answerError reads the error that a broker sent. What is not in our form came
// from something in between.
func answerError(resp *http.Response) error {
	data, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	e := &Error{}
	if jsonErr := json.Unmarshal(data, e); err == nil && jsonErr == nil && e.Code != "" {
		e.Status = resp.StatusCode
		if e.Retry == "" {
			e.Retry = RetryFatal
		}
		return e
	}
	text := strings.TrimSpace(string(data[:min(len(data), 200)]))
	e = &Error{
		Status: resp.StatusCode, Code: CodeInternal, Retry: RetryOutcomeUnknown,
		Message: strings.TrimSpace(fmt.Sprintf("answer %s is not from a broker: %q", resp.Status, text)),
	}
	return errors.Join(e, err)
}
