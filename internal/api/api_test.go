package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/labstack/echo/v4"
	"github.com/rs/zerolog"

	"fila/internal/agent"
	"fila/internal/api/entry"
	"fila/internal/conversation"
	"fila/internal/ledger"
	"fila/internal/pgtest"
	"fila/internal/postgres"
)

const (
	phone = "5531999990001"
	short = "%2B55%20%2831%29%209999-0001" // the same patient, as typed, escaped
	admin = "admin-token"
)

// clinic is a server on a database of its own, with the projects clinic and other.
type clinic struct {
	*testing.T
	pool    *postgres.Pool
	server  *Server
	url     string
	log     *lockedBuffer
	replies func(project string, turn int64, attempt *int, answer agent.Answer) (string, error)
	away    atomic.Pointer[error]

	mu    sync.Mutex
	woken []string
}

// lockedBuffer is a log that goroutines share.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// Reply hands the answer to what the test wants done with it.
func (c *clinic) Reply(_ context.Context, project string, turn int64, attempt *int, answer agent.Answer) (string, error) {
	return c.replies(project, turn, attempt, answer)
}

func (c *clinic) state() error {
	if err := c.away.Load(); err != nil {
		return *err
	}
	return nil
}

func setup(t *testing.T) *clinic {
	t.Helper()
	pool, err := postgres.Open(t.Context(), postgres.Options{URL: pgtest.New(t), MaxConns: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	c := &clinic{T: t, pool: pool, log: &lockedBuffer{}}
	for _, name := range []string{"clinic", "other"} {
		c.exec(`SELECT fila_open_project($1, 'BR', 0, 0, 100, ' ', 'queue', 3, 'advance', true, 3600, 'ignore', '', false)`, name)
	}
	guard := entry.NewGuard(admin, map[string]string{"clinic": "token-clinic", "other": "token-other", "unprepared": ""})
	actions := New(Options{
		Guard: guard, Ledger: ledger.New(pool), Actions: conversation.NewStore(pool), Replies: c,
		Wake: func(project, phone string) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.woken = append(c.woken, project+" "+phone)
		},
	})
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "fila_metric 1\n") })
	c.serve(NewServer(ServerOptions{
		Log: zerolog.New(c.log), Guard: guard, Started: c.state, Ready: func(context.Context) error { return c.state() }, Metrics: metrics,
		Mount: []func(*echo.Echo){actions.Mount, func(e *echo.Echo) {
			e.GET("/v1/panic/:phone", func(c echo.Context) error { panic("canario " + c.Param("phone")) })
			e.GET("/v1/mistake/:phone", func(c echo.Context) error {
				var phones []string
				return c.String(200, phones[len(c.Param("phone"))])
			})
			e.GET("/v1/abort", func(echo.Context) error { panic(http.ErrAbortHandler) })
		}},
	}))
	return c
}

func (c *clinic) serve(server *Server) {
	c.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		c.Fatal(err)
	}
	c.server, c.url = server, "http://"+listener.Addr().String()
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	c.Cleanup(func() {
		if err := server.Shutdown(context.Background()); err != nil {
			c.Error(err)
		}
		if err := <-ended; err != nil {
			c.Error(err)
		}
	})
}

func (c *clinic) exec(sql string, arguments ...any) {
	c.Helper()
	if _, err := c.pool.Exec(c.Context(), sql, arguments...); err != nil {
		c.Fatal(err)
	}
}

func (c *clinic) waits(project, text string) {
	c.Helper()
	c.exec(`INSERT INTO fila_mensagens (projeto, telefone, mensagem) VALUES ($1, $2, $3)`, project, phone, text)
	c.exec(`SELECT fila_adopt($1)`, project)
}

// turn makes a turn of one message in the state given.
func (c *clinic) turn(project, state string) (id int64) {
	c.Helper()
	c.waits(project, "oi")
	if err := c.pool.QueryRow(c.Context(), `SELECT turn_id FROM fila_drain($1, ARRAY[$2], 'here', 30)`, project, phone).Scan(&id); err != nil {
		c.Fatal(err)
	}
	c.exec(`UPDATE turns SET state = $2, reason = 'the test', finished_at = CASE WHEN $2 IN ('done', 'superseded', 'discarded', 'dead') THEN now() END, lease_until = NULL WHERE id = $1`, id, state)
	return id
}

// answer is what a request was answered with.
type answer struct {
	status int
	header http.Header
	text   string
}

func (a answer) field(name string) any {
	var document map[string]any
	if err := json.Unmarshal([]byte(a.text), &document); err != nil {
		return err
	}
	return document[name]
}

// send sends a request with a token; path begins behind the project's root where it does not begin with a slash.
func (c *clinic) send(method, path, token, body string, more ...string) answer {
	c.Helper()
	if !strings.HasPrefix(path, "/") {
		path = "/v1/projects/clinic/" + path
	}
	request, err := http.NewRequestWithContext(c.Context(), method, c.url+path, strings.NewReader(body))
	if err != nil {
		c.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(more); i += 2 {
		request.Header.Set(more[i], more[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		c.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		c.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, strings.TrimSpace(string(text))}
}

func (c *clinic) post(path, body string) answer {
	c.Helper()
	return c.send("POST", path, "token-clinic", body)
}

func (c *clinic) get(path string) answer {
	c.Helper()
	return c.send("GET", path, "token-clinic", "")
}

func (c *clinic) want(a answer, status int, words string) {
	c.Helper()
	if a.status != status || !strings.Contains(a.text, words) {
		c.Errorf("want %d with %q, got %d %s", status, words, a.status, a.text)
	}
	problem := a.header.Get("Content-Type") == "application/problem+json"
	if (status >= 400) != problem {
		c.Errorf("%d: content type %s", status, a.header.Get("Content-Type"))
	}
	if (status == 503) != (a.header.Get("Retry-After") != "") {
		c.Errorf("%d: Retry-After %q", status, a.header.Get("Retry-After"))
	}
}

func (c *clinic) wakes(want ...string) {
	c.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if fmt.Sprint(c.woken) != fmt.Sprint(want) {
		c.Errorf("woken: want %v, got %v", want, c.woken)
	}
	c.woken = nil
}

var errAway = errors.New("the service is starting")

func TestAwayIsSaidAtOnce(t *testing.T) {
	t.Parallel()
	c := setup(t)
	c.want(c.send("GET", "/readyz", "", ""), 200, `"ready"`)
	c.away.Store(&errAway)
	for _, path := range []string{"/v1/projects/clinic/turns", "/v1/projects/nobody/turns", "/v1/nothing", "/readyz"} {
		c.want(c.send("GET", path, "", ""), 503, "the service is starting")
	}
	c.want(c.send("GET", "/healthz", "", ""), 200, `"alive"`)
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	c := setup(t)
	id := c.turn("clinic", "done")
	tests := []struct {
		method, path, token string
		status              int
		header, value       string
	}{
		{"GET", "/nothing", "", 404, "", ""},
		{"GET", "nothing", "token-clinic", 404, "", ""},
		{"GET", "turns/", "token-clinic", 404, "", ""},
		{"DELETE", "turns", "token-clinic", 405, "Allow", "OPTIONS, GET, HEAD"},
		{"GET", "conversations/1/takeover", "token-clinic", 405, "Allow", "OPTIONS, POST"},
		{"GET", "turns", "", 401, "WWW-Authenticate", "Bearer"},
		{"GET", "turns", "token-other", 403, "", ""},
		{"GET", "turns", admin, 200, "", ""},
		{"GET", "/v1/projects/nobody/turns", admin, 404, "", ""},
		{"GET", "/v1/projects/unprepared/conversations/1", "", 503, "", ""},
		{"DELETE", "conversations/1", "token-clinic", 403, "", ""},
		{"GET", "/metrics", "", 401, "WWW-Authenticate", "Bearer"},
		{"GET", "/metrics", "token-clinic", 403, "", ""},
		{"GET", "/metrics", admin, 200, "", ""},
		{"GET", "turns/abc", "token-clinic", 404, "", ""},
		{"GET", "turns/+1", "token-clinic", 404, "", ""},
		{"GET", "turns/99999999999999999999", "token-clinic", 404, "", ""},
		{"GET", "turns/999999", "token-clinic", 404, "", ""},
		{"GET", fmt.Sprintf("/v1/projects/other/turns/%d", id), "token-other", 404, "", ""},
		{"POST", fmt.Sprintf("/v1/projects/other/turns/%d/confirm", id), "token-other", 404, "", ""},
		{"GET", "conversations/" + strings.Repeat("1", 257), "token-clinic", 422, "", ""},
	}
	for _, tt := range tests {
		a := c.send(tt.method, tt.path, tt.token, "")
		if a.status != tt.status || tt.header != "" && a.header.Get(tt.header) != tt.value {
			t.Errorf("%s %s: want %d, got %d %v %s", tt.method, tt.path, tt.status, a.status, a.header, a.text)
		}
		if problem := a.header.Get("Content-Type") == "application/problem+json"; problem != (a.status >= 400) {
			t.Errorf("%s %s: content type %s", tt.method, tt.path, a.header.Get("Content-Type"))
		}
	}
	for _, path := range []string{"/healthz", "/readyz", "turns", fmt.Sprint("turns/", id), "conversations/" + phone} {
		if a := c.send("HEAD", path, "token-clinic", ""); a.status != 200 || a.text != "" {
			t.Errorf("HEAD %s: got %d %q", path, a.status, a.text)
		}
	}
}

func TestConversation(t *testing.T) {
	t.Parallel()
	c := setup(t)
	c.want(c.get("conversations/"+phone), 200, `"mode":"agent"`)
	c.turn("clinic", "running")
	c.waits("clinic", "um")
	c.waits("clinic", "dois")
	c.want(c.post("conversations/"+short+"/takeover", `{"minutes":0.5,"by":"ana\u0000","reason":"r"}`), 200, "human until")
	a := c.get("conversations/" + short)
	if a.field("mode") != "human" || a.field("until") == nil || a.field("phone") != phone || a.field("active_turn") != "1" || a.field("waiting") != 0.0 {
		t.Errorf("after a takeover: got %s", a.text)
	}
	c.want(c.post("conversations/"+phone+"/release", `{"by":"ana"}`), 200, `"agent"`)
	c.wakes("clinic "+phone, "clinic "+phone)
	c.want(c.post("conversations/"+phone+"/suspend", `{"by":"ana","reason":"r"}`), 200, `"suspended"`)
	c.want(c.post("conversations/"+phone+"/release", `{"by":"ana"}`), 409, "resume it")
	c.want(c.post("conversations/"+phone+"/resume", `{"by":"ana","waiting":"answer"}`), 200, `"agent"`)
	c.want(c.post("conversations/"+phone+"/flush", ``), 202, `"nothing waits"`)
	c.waits("clinic", "três")
	c.want(c.post("conversations/"+phone+"/flush", `{}`), 202, `"due now"`)
	if a := c.post("conversations/"+phone+"/typing", ``); a.status != 204 || a.text != "" {
		t.Errorf("typing: want 204, got %d %q", a.status, a.text)
	}
	if a := c.get("conversations/" + phone); a.field("waiting") != 1.0 || a.field("due_at") == nil {
		t.Errorf("got %s", a.text)
	}
}

func TestActionsSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	c := setup(t)
	tests := []struct {
		action, body string
		status       int
		words        string
	}{
		{"takeover", ``, 422, "by is required"},
		{"takeover", `{"by":"ana","minutes":0}`, 422, "minutes must be over 0"},
		{"takeover", `{"by":"ana","minutes":"5"}`, 422, "minutes must be a number"},
		{"takeover", `{"by":"ana","minutes":1e999}`, 422, "minutes must be a number"},
		{"takeover", `{"by":5}`, 422, "by must be a string"},
		{"takeover", `[]`, 422, "the body must be an object"},
		{"takeover", `{"by":"ana","minuts":5}`, 422, "minuts is no field of an action"},
		{"takeover", `{`, 400, "the body is not JSON"},
		{"release", `{}`, 422, "by is required"},
		{"suspend", `{"reason":"x"}`, 422, "by is required"},
		{"suspend", `{"by":"ana"}`, 422, "reason is required"},
		{"resume", `{"waiting":"answer"}`, 422, "by is required"},
		{"resume", `{"by":"ana","waiting":"burn"}`, 422, "waiting must be answer or discard"},
		{"resume", `{"by":"ana","waiting":"answer"}`, 409, "not suspended"},
	}
	for _, tt := range tests {
		c.want(c.post("conversations/"+phone+"/"+tt.action, tt.body), tt.status, tt.words)
	}
	c.want(c.post("conversations/%20/release", `{"by":"ana"}`), 422, "phone is empty")
	c.want(c.send("POST", "conversations/1/release", "token-clinic", `{"by":"ana"}`, "Content-Type", "text/plain"), 415, "application/json")
	c.wakes()
}

func TestErase(t *testing.T) {
	t.Parallel()
	c := setup(t)
	c.turn("clinic", "done")
	c.turn("other", "done")
	c.want(c.send("DELETE", "conversations/"+short, admin, ""), 200, `{"waiting":0,"turns":1,"deliveries":0,"receipts":1}`)
	c.want(c.send("DELETE", "conversations/"+short, admin, `{"by":"ana"}`), 200, `"turns":0`)
	var actors string
	if err := c.pool.QueryRow(t.Context(), `SELECT string_agg(actor, ' ' ORDER BY id) FROM audit`).Scan(&actors); err != nil || actors != "admin ana" {
		t.Errorf("audit: got %q, %v", actors, err)
	}
}
