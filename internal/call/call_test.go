package call

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func client(t *testing.T, o Options) *Client {
	t.Helper()
	if o.Timeout == 0 {
		o.Timeout = 20 * time.Second
	}
	if o.Transport == nil {
		transport := NewTransport()
		t.Cleanup(transport.CloseIdleConnections)
		o.Transport = transport
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func httpServer(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

// rawServer gives every connection, numbered from 1, to serve, and closes it afterwards.
func rawServer(t *testing.T, serve func(n int64, c net.Conn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { listener.Close(); <-done })
	go func() {
		defer close(done)
		for n := int64(1); ; n++ {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			serve(n, c)
			c.Close()
		}
	}()
	return "http://" + listener.Addr().String()
}

func read(c net.Conn) *http.Request {
	r, err := http.ReadRequest(bufio.NewReader(c))
	if err != nil {
		return nil
	}
	io.Copy(io.Discard, r.Body)
	return r
}

func failed(t *testing.T, err error) *Failure {
	t.Helper()
	f, ok := errors.AsType[*Failure](err)
	if !ok {
		t.Fatalf("error: want a *Failure, got %v", err)
	}
	return f
}

func TestPostSendsWhatItShould(t *testing.T) {
	t.Parallel()
	var seen *http.Request
	var body string
	address := httpServer(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		seen, body = r, string(b)
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusServiceUnavailable)
		io.WriteString(w, "later")
	})
	c := client(t, Options{
		URL: strings.Replace(address, "http://", "http://ana:pw@", 1) + "/agent?tenant=1#x", Version: "1.2",
		Headers: map[string]string{"x-team": "front", "content-type": "application/json; charset=utf-8"}, SigningSecret: "quiet",
	})
	got, err := c.Post(t.Context(), "184.1", http.Header{"X-Fila-Attempt": {"2"}}, []byte(`{"a":1}`))
	if err != nil {
		t.Fatal(err)
	}
	if got.Status != 503 || string(got.Body) != "later" || got.RetryAfter != 7*time.Second || got.Truncated {
		t.Errorf("answer: got %+v", got)
	}
	if user, password, _ := seen.BasicAuth(); user != "ana" || password != "pw" {
		t.Errorf("basic authentication: got %q %q", user, password)
	}
	want := map[string]string{
		"Idempotency-Key": "184.1", "X-Fila-Attempt": "2", "X-Team": "front", "User-Agent": "fila/1.2", "Webhook-Id": "184.1",
		"Content-Type": "application/json; charset=utf-8",
	}
	for name, value := range want {
		if seen.Header.Get(name) != value {
			t.Errorf("%s: want %q, got %q", name, value, seen.Header.Get(name))
		}
	}
	if seen.Method != "POST" || seen.URL.RequestURI() != "/agent?tenant=1" || seen.ContentLength != 7 || body != `{"a":1}` {
		t.Errorf("request: got %s %s, %d bytes, %q", seen.Method, seen.URL.RequestURI(), seen.ContentLength, body)
	}
}

func TestGetAsks(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{"/r": "/r?part=2&turn_id=184", "/r?k=1": "/r?k=1&part=2&turn_id=184"} {
		var seen *http.Request
		address := httpServer(t, func(_ http.ResponseWriter, r *http.Request) { seen = r })
		c := client(t, Options{URL: address + path, SigningSecret: "s"})
		if _, err := c.Get(t.Context(), "184.2", url.Values{"turn_id": {"184"}, "part": {"2"}}); err != nil {
			t.Fatal(err)
		}
		if seen.Method != "GET" || seen.RequestURI != want {
			t.Errorf("question: want GET %s, got %s %s", want, seen.Method, seen.RequestURI)
		}
		if seen.Header.Get("Idempotency-Key") != "" || seen.Header.Get("Webhook-Signature") == "" || seen.Header.Get("Content-Type") != "" {
			t.Errorf("headers of the question: got %v", seen.Header)
		}
	}
}

func TestAnswersOfEveryKindComeBackWhole(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		serve     http.HandlerFunc
		status    int
		length    int
		truncated bool
	}{
		"chunked": {func(w http.ResponseWriter, _ *http.Request) {
			for range 3 {
				io.WriteString(w, "abc")
				w.(http.Flusher).Flush()
			}
		}, 200, 9, false},
		"empty":          {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, 204, 0, false},
		"just the bound": {func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, MaxBody)) }, 200, MaxBody, false},
		"over the bound": {func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, MaxBody+1)) }, 200, MaxBody, true},
		"never-ending":   {endless, 200, MaxBody, true},
		"a redirect":     {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", 307) }, 307, 0, false},
		"another protocol": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Upgrade", "x")
			w.Header().Set("Connection", "Upgrade")
			w.WriteHeader(101)
		}, 101, 0, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int64
			address := httpServer(t, func(w http.ResponseWriter, r *http.Request) { calls.Add(1); tt.serve(w, r) })
			got, err := client(t, Options{URL: address}).Post(t.Context(), "k", nil, []byte("{}"))
			if err != nil {
				t.Fatal(err)
			}
			if got.Status != tt.status || len(got.Body) != tt.length || got.Truncated != tt.truncated || calls.Load() != 1 {
				t.Errorf("want %d with %d bytes once, got %d with %d, truncated %v, %d times", tt.status, tt.length, got.Status, len(got.Body), got.Truncated, calls.Load())
			}
		})
	}
}

func endless(w http.ResponseWriter, r *http.Request) {
	for r.Context().Err() == nil {
		w.Write(make([]byte, 64<<10))
	}
}

func TestWhatTheOutcomeIs(t *testing.T) {
	t.Parallel()
	half := "HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\n{\"reply\":"
	tests := map[string]struct {
		serve   func(net.Conn)
		outcome Outcome
		reason  string
	}{
		"hangs up after reading":    {func(c net.Conn) { read(c) }, Unknown, "connection closed without an answer"},
		"breaks off in the headers": {func(c net.Conn) { read(c); io.WriteString(c, "HTTP/1.1 200 OK\r\nA: b\r\n") }, Unknown, "answer broke off"},
		"breaks off in the body":    {func(c net.Conn) { read(c); io.WriteString(c, half) }, Unknown, "answer broke off"},
		"breaks off in a chunk": {func(c net.Conn) {
			read(c)
			io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab")
		}, Unknown, "answer broke off"},
		"resets after reading":         {func(c net.Conn) { read(c); c.(*net.TCPConn).SetLinger(0) }, Unknown, "connection reset by peer"},
		"does not speak HTTP":          {func(c net.Conn) { read(c); io.WriteString(c, "220 mail.example ESMTP\r\n\r\n") }, Unknown, "connection lost, or the answer is not HTTP"},
		"sends headers without an end": {func(c net.Conn) { read(c); io.WriteString(c, "HTTP/1.1 200 OK\r\nA: "+strings.Repeat("a", 1<<20)) }, Unknown, "connection lost, or the answer is not HTTP"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := rawServer(t, func(_ int64, c net.Conn) { tt.serve(c) })
			_, err := client(t, Options{URL: address + "/?token=hidden"}).Post(t.Context(), "k", nil, []byte("{}"))
			if f := failed(t, err); f.Outcome != tt.outcome || f.Reason != tt.reason {
				t.Errorf("want %v %q, got %v %q (%v)", tt.outcome, tt.reason, f.Outcome, f.Reason, f.Unwrap())
			}
		})
	}
}

func TestAReceiverThatHangsUpUnheardIsNeverCalledDone(t *testing.T) {
	t.Parallel()
	address := rawServer(t, func(_ int64, c net.Conn) { c.(*net.TCPConn).SetLinger(0) })
	_, err := client(t, Options{URL: address}).Post(t.Context(), "k", nil, []byte("{}"))
	failed(t, err) // before or after the first byte left: both happen
}

func TestNobodyListens(t *testing.T) {
	t.Parallel()
	address := rawServer(t, func(int64, net.Conn) {})
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", closed.Addr().String())
	}}
	transport := newTransport((&net.Dialer{Resolver: resolver}).DialContext, new(tls.Config))
	tests := map[string]struct{ url, reason string }{
		"refused": {"http://" + closed.Addr().String(), "connection refused"},
		"no TLS":  {strings.Replace(address, "http:", "https:", 1), "TLS handshake failed"},
		"no name": {"http://nowhere.invalid", "host name lookup failed"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := client(t, Options{URL: tt.url, Transport: transport}).Post(t.Context(), "k", nil, []byte("{}"))
			if f := failed(t, err); f.Outcome != NotDone || f.Reason != tt.reason {
				t.Errorf("want not_done %q, got %v %q", tt.reason, f.Outcome, f.Reason)
			}
		})
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") }))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	_, err := client(t, Options{URL: server.URL}).Post(t.Context(), "k", nil, []byte("{}"))
	if f := failed(t, err); f.Outcome != NotDone || f.Reason != "TLS certificate is not trusted or not for this host" {
		t.Errorf("unknown authority: got %v %q", f.Outcome, f.Reason)
	}
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	transport := newTransport(new(net.Dialer).DialContext, &tls.Config{RootCAs: roots})
	t.Cleanup(transport.CloseIdleConnections)
	got, err := client(t, Options{URL: server.URL, Transport: transport}).Post(t.Context(), "k", nil, []byte("{}"))
	if err != nil || string(got.Body) != "ok" {
		t.Errorf("known authority: got %q, %v", got.Body, err)
	}
}

func TestAForeignTransportErrsTowardsUnknown(t *testing.T) {
	t.Parallel()
	address := rawServer(t, func(_ int64, c net.Conn) { read(c) })
	foreign := &http.Transport{}
	t.Cleanup(foreign.CloseIdleConnections)
	_, err := client(t, Options{URL: address, Transport: foreign}).Post(t.Context(), "k", nil, []byte("{}"))
	if f := failed(t, err); f.Outcome != Unknown {
		t.Errorf("want unknown, got %v", f.Outcome)
	}
}

func TestTimeoutAndCancelTellWhetherItLeft(t *testing.T) {
	t.Parallel()
	boss := errors.New("superseded")
	for _, secure := range []bool{false, true} {
		for _, cancelled := range []bool{false, true} {
			t.Run(fmt.Sprintf("secure=%v,cancelled=%v", secure, cancelled), func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithCancelCause(t.Context())
				release := make(chan struct{})
				address := rawServer(t, func(_ int64, c net.Conn) {
					io.ReadFull(c, make([]byte, 1))
					if cancelled {
						cancel(boss)
					}
					<-release
				})
				t.Cleanup(func() { cancel(nil); close(release) })
				o := Options{URL: address, Timeout: 20 * time.Second}
				want := Failure{Outcome: Unknown, Reason: "given up by fila before there was a complete answer"}
				if !cancelled {
					o.Timeout = 50 * time.Millisecond
					want.Reason = "no answer within 0.05s"
				}
				if secure { // the handshake is never answered, so nothing of the request leaves
					o.URL = strings.Replace(address, "http:", "https:", 1)
					want.Outcome, want.Reason = NotDone, strings.Replace(want.Reason, "answer", "connection", 1)
				}
				_, err := client(t, o).Post(ctx, "k", nil, []byte("{}"))
				if f := failed(t, err); f.Outcome != want.Outcome || f.Reason != want.Reason {
					t.Errorf("want %v %q, got %v %q", want.Outcome, want.Reason, f.Outcome, f.Reason)
				}
				if errors.Is(err, context.Canceled) != cancelled || errors.Is(err, boss) != cancelled || errors.Is(err, context.DeadlineExceeded) == cancelled {
					t.Errorf("error chain: got %#v", errors.Unwrap(err))
				}
			})
		}
	}
}

func TestTimeoutCoversTheBody(t *testing.T) {
	t.Parallel()
	address := httpServer(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		io.WriteString(w, `{"reply":`)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	_, err := client(t, Options{URL: address, Timeout: 80 * time.Millisecond}).Post(t.Context(), "k", nil, []byte("{}"))
	if f := failed(t, err); f.Outcome != Unknown || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("want unknown, deadline exceeded; got %v %q", f.Outcome, f.Reason)
	}
}

func TestAWrittenRequestIsNeverRepeated(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	address := rawServer(t, func(_ int64, c net.Conn) {
		for read(c) != nil {
			if requests.Add(1) == 2 {
				return // on the kept connection, after the request was read
			}
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		}
	})
	c := client(t, Options{URL: address})
	if _, err := c.Post(t.Context(), "a", nil, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	_, err := c.Post(t.Context(), "b", nil, []byte("{}"))
	if f := failed(t, err); f.Outcome != Unknown || requests.Load() != 2 {
		t.Errorf("want unknown after 2 requests, got %v after %d", f.Outcome, requests.Load())
	}
}

// deaf is a connection that the receiver has forgotten: writes fail once it is stale, and reads do not show it before.
type deaf struct {
	net.Conn
	stale *atomic.Bool
}

func (d *deaf) Write(p []byte) (int, error) {
	if d.stale.Load() {
		return 0, syscall.EPIPE
	}
	return d.Conn.Write(p)
}

func TestAStaleConnectionIsReplacedOnce(t *testing.T) {
	t.Parallel()
	for _, again := range []bool{true, false} {
		t.Run(fmt.Sprintf("listens=%v", again), func(t *testing.T) {
			t.Parallel()
			var requests, dials atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body); requests.Add(1) }))
			t.Cleanup(server.Close)
			var stale atomic.Bool
			transport := newTransport(func(ctx context.Context, network, address string) (net.Conn, error) {
				if dials.Add(1) > 1 {
					if !again {
						return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
					}
					return new(net.Dialer).DialContext(ctx, network, address)
				}
				raw, err := new(net.Dialer).DialContext(ctx, network, address)
				return &deaf{raw, &stale}, err
			}, nil)
			t.Cleanup(transport.CloseIdleConnections)
			c := client(t, Options{URL: server.URL, Transport: transport})
			if _, err := c.Post(t.Context(), "a", nil, []byte("{}")); err != nil {
				t.Fatal(err)
			}
			stale.Store(true)
			_, err := c.Post(t.Context(), "b", nil, []byte("{}"))
			if again && (err != nil || requests.Load() != 2) {
				t.Errorf("want a second request, got %d and %v", requests.Load(), err)
			}
			if !again && failed(t, err).Outcome != NotDone {
				t.Errorf("want not_done, got %v", err)
			}
			if dials.Load() != 2 {
				t.Errorf("want 2 dials, got %d", dials.Load())
			}
		})
	}
}

func TestConnectionsAreKept(t *testing.T) {
	t.Parallel()
	var addresses []string
	address := httpServer(t, func(_ http.ResponseWriter, r *http.Request) { addresses = append(addresses, r.RemoteAddr) })
	c := client(t, Options{URL: address})
	for range 3 {
		if _, err := c.Post(t.Context(), "k", nil, []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	if addresses[0] != addresses[2] {
		t.Errorf("want one connection, got %v", addresses)
	}
}
