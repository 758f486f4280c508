package call

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// dialTimeout covers name lookup, connection and TLS handshake; a call with less time in all has less here too.
	dialTimeout = 10 * time.Second
	// idleTimeout is below the 5 s after which common servers (node, uvicorn) hang up on an idle connection. Otherwise their
	// closing and our next request may cross on the wire, and whether that request was read is then unknown.
	idleTimeout = 4 * time.Second
	// idlePerHost lets hundreds of turns that run at once against one agent keep their connections.
	idlePerHost = 256
)

// Transport is an HTTP/1.1 transport that knows what left on each of its connections. It follows no proxy from the
// environment. A request with Close set goes out on a connection dialled for it, never on a kept one.
type Transport struct {
	kept, fresh *http.Transport
}

// NewTransport makes a transport; clients may share it.
func NewTransport() *Transport {
	return newTransport((&net.Dialer{KeepAlive: 15 * time.Second}).DialContext, &tls.Config{MinVersion: tls.VersionTLS12})
}

type dial func(ctx context.Context, network, address string) (net.Conn, error)

func newTransport(plain dial, config *tls.Config) *Transport {
	kept := &http.Transport{
		DialContext:            watched(plain),
		DialTLSContext:         watched(secured(plain, config)),
		MaxIdleConnsPerHost:    idlePerHost,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: 64 << 10,
	}
	fresh := kept.Clone()
	fresh.DisableKeepAlives = true
	return &Transport{kept: kept, fresh: fresh}
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Close {
		return t.fresh.RoundTrip(r)
	}
	return t.kept.RoundTrip(r)
}

// CloseIdleConnections closes the connections that no request is using.
func (t *Transport) CloseIdleConnections() { t.kept.CloseIdleConnections() }

// handshakeError marks what failed between the connection and the first byte of a request.
type handshakeError struct{ err error }

func (e *handshakeError) Error() string { return "TLS handshake: " + e.err.Error() }
func (e *handshakeError) Unwrap() error { return e.err }

// secured is done here, not left to net/http, so that conn counts what of the request was encrypted and not the alerts
// that TLS itself writes while a connection is closed.
func secured(plain dial, config *tls.Config) dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		raw, err := plain(ctx, network, address)
		if err != nil {
			return nil, err
		}
		own := config.Clone()
		own.ServerName, _, _ = net.SplitHostPort(address)
		secure := tls.Client(raw, own)
		if err := secure.HandshakeContext(ctx); err != nil {
			raw.Close()
			return nil, &handshakeError{err}
		}
		return secure, nil
	}
}

func watched(open dial) dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, dialTimeout)
		defer cancel()
		c, err := open(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &conn{Conn: c}, nil
	}
}

// conn counts its writes. A write counts from its beginning, and no longer once it has failed with nothing accepted.
type conn struct {
	net.Conn
	writes atomic.Int64
	// check is asked once, before the next write.
	check atomic.Pointer[func() error]
}

func (c *conn) Write(p []byte) (int, error) {
	if check := c.check.Swap(nil); check != nil {
		if err := (*check)(); err != nil {
			return 0, err
		}
	}
	c.writes.Add(1)
	n, err := c.Conn.Write(p)
	if n == 0 {
		c.writes.Add(-1)
	}
	return n, err
}

// passage records how far one request got.
type passage struct {
	check func() error // the caller's last word, or nil

	mu      sync.Mutex
	conn    *conn
	before  int64
	reused  bool
	headers bool
}

func (p *passage) watch(ctx context.Context) context.Context {
	p.check = before(ctx)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: p.gotConn, WroteHeaders: p.wroteHeaders})
}

func (p *passage) gotConn(info httptrace.GotConnInfo) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reused = info.Reused
	if p.conn, _ = info.Conn.(*conn); p.conn != nil {
		p.before = p.conn.writes.Load()
		if p.check != nil {
			p.conn.check.Store(&p.check)
		}
	}
}

func (p *passage) wroteHeaders() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.headers = true
}

// written says whether any byte of the request may have left. On a foreign transport's connection the only sign is that the
// headers were handed to its buffer, which errs towards yes.
func (p *passage) written() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn == nil {
		return p.headers
	}
	return p.conn.writes.Load() > p.before
}

// stale says whether the request met a kept connection and nothing of it left.
func (p *passage) stale() bool {
	p.mu.Lock()
	reused := p.reused
	p.mu.Unlock()
	return reused && !p.written()
}
