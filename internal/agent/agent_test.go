package agent

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"fila/internal/call"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve starts an agent whose reconcile URL is /reconcile and gives a client of it.
func serve(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return connect(t, server.URL)
}

func connect(t *testing.T, address string) *Client {
	t.Helper()
	transport := call.NewTransport()
	t.Cleanup(transport.CloseIdleConnections)
	c, err := New(Options{Call: call.Options{URL: address + "/ask", Timeout: 20 * time.Second, SigningSecret: "s", Transport: transport}, ReconcileURL: address + "/reconcile?k=1"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAskSendsTheTurn(t *testing.T) {
	t.Parallel()
	name := "Zé & <Ana>"
	tests := map[string]struct {
		request Request
		body    string
	}{
		"whole": {
			Request{
				TurnID: 184, Project: "clinfeto", Phone: "5531999990001", SessionID: "s-9", ContactName: &name, Text: "1 < 2 && \"oi\"\n🦷", Attempt: 2, FiredBy: "quiet",
				Messages: json.RawMessage(`[{"id": "wamid.A", "text": "<oi>", "media": null}]`), SupersededTurns: []int64{9007199254740993, 7},
			},
			`{"turn_id":"184","project":"clinfeto","phone":"5531999990001","session_id":"s-9","contact_name":"Zé & <Ana>","text":"1 < 2 && \"oi\"\n🦷","attempt":2,"fired_by":"quiet",` +
				`"messages":[{"id":"wamid.A","text":"<oi>","media":null}],"superseded_turns":["9007199254740993","7"]}`,
		},
		"least": {
			Request{TurnID: 9007199254740993, Attempt: 1},
			`{"turn_id":"9007199254740993","project":"","phone":"","session_id":"","contact_name":null,"text":"","attempt":1,"fired_by":"","messages":[],"superseded_turns":[]}`,
		},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			var header http.Header
			var body []byte
			c := serve(t, func(w http.ResponseWriter, r *http.Request) {
				header = r.Header
				body, _ = io.ReadAll(r.Body)
				io.WriteString(w, `{"reply":"ok"}`)
			})
			got, err := c.Ask(t.Context(), tt.request)
			if err != nil || len(got.Replies) != 1 || got.Replies[0] != "ok" {
				t.Fatalf("answer: got %+v, %v", got, err)
			}
			if string(body) != tt.body {
				t.Errorf("body: want\n%s, got\n%s", tt.body, body)
			}
			var decoded struct {
				TurnID  string `json:"turn_id"`
				Attempt json.Number
			}
			if err := json.Unmarshal(body, &decoded); err != nil {
				t.Fatal(err)
			}
			if header.Get("Idempotency-Key") != decoded.TurnID || header.Get("Webhook-Id") != decoded.TurnID || header.Get("X-Fila-Attempt") != decoded.Attempt.String() {
				t.Errorf("headers: got %v", header)
			}
		})
	}
}

func TestAskTellsHowItWent(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		serve  http.HandlerFunc
		want   call.Outcome
		reason string
		after  time.Duration
	}{
		"too many": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "2")
			w.WriteHeader(429)
		}, call.NotDone, "agent answered 429", 2 * time.Second},
		"refusal":  {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(400) }, call.Permanent, "agent answered 400", 0},
		"nonsense": {func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "bom dia") }, call.Permanent, "agent answered 200 with a body that is not an answer", 0},
		"huge": {func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, `{"reply":"`+strings.Repeat("a", call.MaxBody)+`"}`)
		}, call.Permanent, "agent answered more than 1 MiB", 0},
		"cut off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "90")
			io.WriteString(w, `{"reply":"metade`)
		}, call.Unknown, "answer broke off", 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := serve(t, func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				tt.serve(w, r)
			}).Ask(t.Context(), Request{TurnID: 1, Attempt: 1})
			f, ok := errors.AsType[*call.Failure](err)
			if !ok || f.Outcome != tt.want || f.Reason != tt.reason || f.RetryAfter != tt.after {
				t.Errorf("want %v %q after %v, got %+v", tt.want, tt.reason, tt.after, f)
			}
		})
	}
}

func TestAskWithNobodyThere(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	_, err = connect(t, "http://"+listener.Addr().String()).Ask(t.Context(), Request{TurnID: 1})
	if call.OutcomeOf(err) != call.NotDone || err.Error() != "connection refused" {
		t.Errorf("want not_done, connection refused; got %v", err)
	}
}

func TestAskRefusesBrokenMessages(t *testing.T) {
	t.Parallel()
	c := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the agent was called") })
	_, err := c.Ask(t.Context(), Request{TurnID: 1, Messages: json.RawMessage(`[secret`)})
	if call.OutcomeOf(err) != call.Permanent || strings.Contains(err.Error(), "secret") {
		t.Errorf("want permanent without the content, got %v", err)
	}
}

func TestReconcile(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		status int
		body   string
		want   call.Outcome
		reply  string
		fails  bool
	}{
		"done":             {200, `{"reply":"ok"}`, call.Done, "ok", false},
		"done, nothing":    {200, ``, call.Done, "", false},
		"not done":         {404, `{"reply":"ok"}`, call.NotDone, "", false},
		"under way":        {202, ``, call.Unknown, "", false},
		"200 and nonsense": {200, `<html>`, call.Unknown, "", true},
		"no content":       {204, ``, call.Unknown, "", true},
		"broken":           {500, ``, call.Unknown, "", true},
		"gone":             {410, ``, call.Unknown, "", true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method != "GET" || r.RequestURI != "/reconcile?k=1&turn_id=184" || r.Header.Get("Webhook-Id") != "184" {
					t.Errorf("question: got %s %s %v", r.Method, r.RequestURI, r.Header)
				}
				w.WriteHeader(tt.status)
				if tt.body != "" {
					io.WriteString(w, tt.body)
				}
			})
			got, err := c.Reconcile(t.Context(), 184)
			if got.Outcome != tt.want || strings.Join(got.Answer.Replies, "|") != tt.reply || (err != nil) != tt.fails {
				t.Errorf("want %v %q, got %+v, %v", tt.want, tt.reply, got, err)
			}
		})
	}
}

func TestReconcileGivenUp(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	c := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	got, err := c.Reconcile(ctx, 1)
	if got.Outcome != call.Unknown || !errors.Is(err, context.Canceled) {
		t.Errorf("want unknown and cancelled, got %+v, %v", got, err)
	}
}

func TestNewNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	good := call.Options{URL: "http://127.0.0.1/ask", Timeout: time.Second}
	tests := map[string]Options{
		"agent: url": {}, "agent reconcile: url": {Call: good, ReconcileURL: "ftp://x"},
	}
	for want, o := range tests {
		if _, err := New(o); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("want an error that begins %q, got %v", want, err)
		}
	}
	c, err := New(Options{Call: good})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := c.Reconcile(t.Context(), 1); err == nil || got.Outcome != call.Unknown {
		t.Errorf("without a reconcile URL: want unknown and an error, got %+v, %v", got, err)
	}
}
