// Package call makes one outgoing HTTP call: signed, bounded in time and size, and with its outcome told apart.
//
// A failed call matters less than what is known of its effect. Every failure is therefore a *Failure, which says
// whether the receiver certainly did nothing, refused for good, or may or may not have acted.
package call

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// MaxBody is how many bytes of an answer are read; what lies behind them is left unread.
const MaxBody = 1 << 20

// errTimeout is the cancellation cause that tells the client's own timeout from the caller's.
var errTimeout = errors.New("call timed out")

// Options describe one receiver.
type Options struct {
	// URL is http or https. A user and password in it become basic authentication.
	URL string
	// Timeout covers the whole exchange, from the dial to the last byte of the answer. Required.
	Timeout time.Duration
	// Headers go with every request. New refuses those that HTTP or this package set (see New).
	Headers map[string]string
	// SigningSecret switches on the Standard Webhooks headers. Behind "whsec_" it is base64, else its bytes are the key.
	SigningSecret string
	// Transport carries the requests. Nil: one of NewTransport for this client alone.
	Transport http.RoundTripper
	// Version is named in the User-Agent, "fila/<version>".
	Version string
}

// Response is a complete answer, whatever its status.
type Response struct {
	Status int
	Header http.Header
	// Body holds at most MaxBody bytes.
	Body []byte
	// Truncated says that there was more than Body holds.
	Truncated bool
	// RetryAfter is what the receiver asked for, at most an hour; 0 where it asked for nothing.
	RetryAfter time.Duration
}

// Client calls one receiver. It is safe for concurrent use.
type Client struct {
	url       *url.URL
	timeout   time.Duration
	header    http.Header
	key       []byte
	transport http.RoundTripper
}

// New checks the options and makes a client; nothing is dialled yet.
//
// Headers may not name Idempotency-Key, X-Fila-Attempt, the webhook-* headers of the signature, or those which frame the
// message or belong to the connection (Host, Content-Length, Transfer-Encoding, Connection and the like): a file that tries
// is wrong, and obeying or quietly ignoring it would surprise. User-Agent, Accept, Content-Type and Authorization may be set.
func New(o Options) (*Client, error) {
	target, err := parseURL(o.URL)
	if err != nil {
		return nil, err
	}
	if o.Timeout <= 0 {
		return nil, fmt.Errorf("timeout %s: must be above 0", o.Timeout)
	}
	key, err := signingKey(o.SigningSecret)
	if err != nil {
		return nil, err
	}
	header, err := baseHeader(o, target.User)
	if err != nil {
		return nil, err
	}
	target.User = nil
	transport := o.Transport
	if transport == nil {
		transport = NewTransport()
	}
	return &Client{url: target, timeout: o.Timeout, header: header, key: key, transport: transport}, nil
}

// questionTimeout bounds a question after an unknown outcome, which is a look-up and asked again anyway.
const questionTimeout = 30 * time.Second

// NewQuestion makes the client that asks at another URL what became of the calls to a receiver: as they are called, but in half
// a minute at most. Without a URL there is nobody to ask, and it is nil.
func NewQuestion(receiver Options, url string) (*Client, error) {
	if url == "" {
		return nil, nil
	}
	receiver.URL, receiver.Timeout = url, min(receiver.Timeout, questionTimeout)
	return New(receiver)
}

// Post sends a JSON body. The key is its Idempotency-Key and, where calls are signed, its webhook-id: give the same one
// to every repetition. header is added to the client's own. The error is a *Failure.
func (c *Client) Post(ctx context.Context, key string, header http.Header, body []byte) (Response, error) {
	return c.do(ctx, func(ctx context.Context) *http.Request {
		r := c.request(ctx, http.MethodPost, key, body)
		// Left to itself net/http repeats a request that carries an Idempotency-Key when a reused connection breaks, even
		// after it was written. It can only do so with a body that it can rewind, and this is none: GetBody stays nil.
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		r.Header.Set("Idempotency-Key", key)
		for name, values := range header {
			r.Header[http.CanonicalHeaderKey(name)] = values
		}
		return r
	})
}

// Get asks a question without an effect: query is added to that of the URL. The key is used for the signature alone,
// over an empty body. The error is a *Failure.
func (c *Client) Get(ctx context.Context, key string, query url.Values) (Response, error) {
	return c.do(ctx, func(ctx context.Context) *http.Request {
		r := c.request(ctx, http.MethodGet, key, nil)
		r.URL = withQuery(c.url, query)
		r.Header.Del("Content-Type")
		return r
	})
}

func (c *Client) request(ctx context.Context, method, key string, body []byte) *http.Request {
	r := &http.Request{Method: method, URL: c.url, Host: c.url.Host, Header: c.header.Clone()}
	if c.key != nil {
		sign(r.Header, c.key, key, time.Now(), body)
	}
	return r.WithContext(ctx)
}

// do makes the exchange, and a second one where the first met a kept connection that was dead before anything of the
// request had left on it.
func (c *Client) do(ctx context.Context, build func(context.Context) *http.Request) (Response, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout, errTimeout)
	defer cancel()
	way := new(passage)
	response, err := c.exchange(build(way.watch(ctx)))
	if err != nil && ctx.Err() == nil && way.stale() {
		way = new(passage)
		again := build(way.watch(ctx))
		again.Close = true // Transport dials for it
		response, err = c.exchange(again)
	}
	if err != nil {
		return Response{}, c.failure(ctx, way, err)
	}
	return response, nil
}

// exchange is one request and its whole answer. It goes round http.Client, which would follow redirects.
func (c *Client) exchange(r *http.Request) (Response, error) {
	answer, err := c.transport.RoundTrip(r)
	if err != nil {
		return Response{}, err
	}
	defer answer.Body.Close()
	response := Response{Status: answer.StatusCode, Header: answer.Header, RetryAfter: retryAfter(answer.Header, time.Now())}
	if answer.StatusCode == http.StatusSwitchingProtocols {
		return response, nil // its body is the connection itself, which need never end
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, MaxBody+1))
	if err != nil {
		return Response{}, err
	}
	response.Truncated = len(body) > MaxBody
	response.Body = body[:min(len(body), MaxBody)]
	return response, nil
}

func (c *Client) failure(ctx context.Context, way *passage, err error) *Failure {
	f := &Failure{Outcome: NotDone, Reason: reason(err), cause: err}
	missing := "connection"
	if way.written() {
		f.Outcome, missing = Unknown, "answer"
	}
	switch {
	case ctx.Err() == nil:
	case errors.Is(context.Cause(ctx), errTimeout):
		f.Reason = fmt.Sprintf("no %s within %ss", missing, strconv.FormatFloat(c.timeout.Seconds(), 'f', -1, 64))
		f.cause = ctx.Err()
	default:
		f.Reason = fmt.Sprintf("given up by fila before there was a complete %s", missing)
		f.cause = errors.Join(ctx.Err(), context.Cause(ctx))
	}
	return f
}
