package delivery

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"fila/internal/call"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func serve(t *testing.T, h http.HandlerFunc) Channel {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return connect(t, server.URL)
}

func connect(t *testing.T, address string) Channel {
	t.Helper()
	transport := call.NewTransport()
	t.Cleanup(transport.CloseIdleConnections)
	c, err := New(Options{
		Type:         TypeHTTP,
		Call:         call.Options{URL: address + "/send", Timeout: 20 * time.Second, SigningSecret: "s", Transport: transport},
		ReconcileURL: address + "/reconcile",
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestSendPostsThePart(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		part      Part
		key, body string
	}{
		"second of three": {
			Part{TurnID: 184, Project: "clinfeto", Phone: "5531999990001", Address: "553199990001@s.whatsapp.net", SessionID: "s-9", Number: 2, Of: 3, Text: "14h <ou> 16h & \"18h\""},
			"184.2",
			`{"turn_id":"184","project":"clinfeto","phone":"5531999990001","address":"553199990001@s.whatsapp.net","part":2,"parts":3,"text":"14h <ou> 16h & \"18h\"","session_id":"s-9"}`,
		},
		"fallback": {
			Part{TurnID: 9007199254740993, Of: 1, Text: "Já chamo"},
			"9007199254740993.fallback",
			`{"turn_id":"9007199254740993","project":"","phone":"","address":"","part":0,"parts":1,"text":"Já chamo","session_id":""}`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var header http.Header
			var body []byte
			c := serve(t, func(w http.ResponseWriter, r *http.Request) {
				header = r.Header
				body, _ = io.ReadAll(r.Body)
				io.WriteString(w, `{"id":"wamid.1"}`)
			})
			id, err := c.Send(t.Context(), tt.part)
			if id != "wamid.1" || err != nil {
				t.Fatalf("want wamid.1, got %q, %v", id, err)
			}
			if string(body) != tt.body {
				t.Errorf("body: want\n%s, got\n%s", tt.body, body)
			}
			if header.Get("Idempotency-Key") != tt.key || header.Get("Webhook-Id") != tt.key || header.Get("Webhook-Signature") == "" {
				t.Errorf("want the key %q, got %v", tt.key, header)
			}
		})
	}
}

func TestProviderIDIsReadLeniently(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		`{"id":"a"}`: "a", `{"id":12345678901234567890}`: "12345678901234567890", `{"id":"a\u0000b","x":{}}`: "ab", ``: "", `ok`: "", `[{"id":"a"}]`: "", `{"ID":"a"}`: "",
		`{"id":null}`: "", `{"id":true}`: "", `{"id":{"id":"a"}}`: "", `{"id":"a"`: "", `{"id":"` + strings.Repeat("a", 513) + `"}`: "",
		`{"id":"a","pad":"` + strings.Repeat("a", call.MaxBody) + `"}`: "",
	}
	for body, want := range tests {
		c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(201)
			io.WriteString(w, body)
		})
		if id, err := c.Send(t.Context(), Part{TurnID: 1, Number: 1, Of: 1}); id != want || err != nil {
			t.Errorf("%.60s: want %q, got %q, %v", body, want, id, err)
		}
	}
}

func TestStatuses(t *testing.T) {
	t.Parallel()
	outcomes := map[call.Outcome][]int{
		call.Done:      {200, 201, 202, 204, 299},
		call.NotDone:   {408, 409, 425, 429, 500, 502, 503, 504, 599},
		call.Permanent: {101, 301, 302, 307, 400, 401, 403, 404, 413, 422, 423, 600},
	}
	for want, statuses := range outcomes {
		for _, status := range statuses {
			if got := judge(status); got != want {
				t.Errorf("%d: want %v, got %v", status, want, got)
			}
		}
	}
}

func TestSendTellsHowItWent(t *testing.T) {
	t.Parallel()
	hangUp := func(w http.ResponseWriter, _ *http.Request) {
		if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
			c.Close()
		}
	}
	tests := map[string]struct {
		serve  http.HandlerFunc
		want   call.Outcome
		reason string
		after  time.Duration
	}{
		"busy": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "6")
			w.WriteHeader(429)
		}, call.NotDone, "delivery answered 429", 6 * time.Second},
		"refused":  {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(422) }, call.Permanent, "delivery answered 422", 0},
		"moved":    {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/other", 308) }, call.Permanent, "delivery answered 308", 0},
		"hangs up": {hangUp, call.Unknown, "connection closed without an answer", 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := serve(t, func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				tt.serve(w, r)
			}).Send(t.Context(), Part{TurnID: 1, Number: 1, Of: 1})
			f, ok := errors.AsType[*call.Failure](err)
			if !ok || f.Outcome != tt.want || f.Reason != tt.reason || f.RetryAfter != tt.after {
				t.Errorf("want %v %q after %v, got %+v", tt.want, tt.reason, tt.after, f)
			}
		})
	}
}

func TestSendWithNobodyThere(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	_, err = connect(t, "http://"+listener.Addr().String()).Send(t.Context(), Part{TurnID: 1, Number: 1})
	if call.OutcomeOf(err) != call.NotDone {
		t.Errorf("want not_done, got %v", err)
	}
}

func TestReconcile(t *testing.T) {
	t.Parallel()
	tests := []struct {
		status int
		body   string
		want   call.Outcome
		id     string
		fails  bool
	}{
		{200, `{"id":"a"}`, call.Done, "a", false},
		{200, `yes`, call.Done, "", false},
		{404, ``, call.NotDone, "", false},
		{202, ``, call.Unknown, "", false},
		{204, ``, call.Unknown, "", true},
		{503, ``, call.Unknown, "", true},
	}
	for _, tt := range tests {
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method != "GET" || r.RequestURI != "/reconcile?part=2&turn_id=184" || r.Header.Get("Webhook-Id") != "184.2" {
				t.Errorf("question: got %s %s %v", r.Method, r.RequestURI, r.Header)
			}
			w.WriteHeader(tt.status)
			if tt.body != "" {
				io.WriteString(w, tt.body)
			}
		})
		got, err := c.Reconcile(t.Context(), 184, 2)
		if got.Outcome != tt.want || got.ProviderID != tt.id || (err != nil) != tt.fails {
			t.Errorf("%d %s: want %v %q, got %+v, %v", tt.status, tt.body, tt.want, tt.id, got, err)
		}
	}
}

func TestLogAndNoneSendNothing(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{TypeLog, TypeNone} {
		var out bytes.Buffer
		c, err := New(Options{Type: kind, Logger: zerolog.New(&out)})
		if err != nil {
			t.Fatal(err)
		}
		id, err := c.Send(t.Context(), Part{TurnID: 184, Project: "clinfeto", Phone: "canary", Address: "canary", SessionID: "canary", Number: 1, Of: 2, Text: "canário"})
		if id != "" || err != nil {
			t.Errorf("%s: got %q, %v", kind, id, err)
		}
		want := `{"level":"info","project":"clinfeto","turn_id":"184","part":1,"parts":2,"chars":7,"message":"delivery: part logged, not sent"}` + "\n"
		if kind == TypeNone {
			want = ""
		}
		if out.String() != want {
			t.Errorf("%s: want the log %q, got %q", kind, want, out.String())
		}
		if got, err := c.Reconcile(t.Context(), 184, 1); got.Outcome != call.Unknown || err == nil {
			t.Errorf("%s: want unknown and an error, got %+v, %v", kind, got, err)
		}
	}
}

func TestNewNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	good := call.Options{URL: "http://127.0.0.1/send", Timeout: time.Second}
	tests := map[string]Options{
		`delivery type "fax": unknown`: {Type: "fax"}, "delivery: url": {Type: TypeHTTP}, "delivery reconcile: url": {Type: TypeHTTP, Call: good, ReconcileURL: "x"},
	}
	for want, o := range tests {
		if _, err := New(o); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("want an error that begins %q, got %v", want, err)
		}
	}
	c, err := New(Options{Type: TypeHTTP, Call: good})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := c.Reconcile(t.Context(), 1, 1); got.Outcome != call.Unknown || err == nil {
		t.Errorf("without a reconcile URL: want unknown and an error, got %+v, %v", got, err)
	}
}
