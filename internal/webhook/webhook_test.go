package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/rs/zerolog"

	"fila/internal/api/entry"
	"fila/internal/pgtest"
	"fila/internal/postgres"
	"fila/internal/queue"
)

type table map[string]Project

func (t table) Project(name string) (Project, bool) { p, ok := t[name]; return p, ok }

type entrance struct {
	*testing.T
	pool  *postgres.Pool
	url   string
	acked atomic.Int32
	log   *lockedBuffer
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

// setup serves the project clinic, and unprepared, which the database does not know, from a real queue.
func setup(t *testing.T) *entrance {
	t.Helper()
	pool, err := postgres.Open(t.Context(), postgres.Options{URL: pgtest.New(t), MaxConns: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	e := &entrance{T: t, pool: pool, log: &lockedBuffer{}}
	if _, err := pool.Exec(t.Context(), `SELECT fila_open_project('clinic', 'BR', 60, 60, 100, ' ', 'queue', 3, 'advance', true, 3600, 'ignore', '', false)`); err != nil {
		t.Fatal(err)
	}
	log := zerolog.New(e.log)
	stored := queue.New(queue.Options{Pool: pool, Log: log, Patience: time.Second})
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() { defer close(done); _ = stored.Run(ctx) }()
	t.Cleanup(func() { stop(); <-done })

	server := echo.New()
	server.HTTPErrorHandler = entry.Handler(log)
	New(Options{
		Queue: stored, Projects: table{"clinic": {Country: "BR"}, "unprepared": {}}, Guard: entry.NewGuard("admin", map[string]string{"clinic": "token", "unprepared": ""}),
		Acked: func(string, time.Duration) { e.acked.Add(1) },
	}).Mount(server)
	listening := httptest.NewServer(server)
	t.Cleanup(listening.Close)
	e.url = listening.URL
	return e
}

func (e *entrance) post(project, body string) (int, http.Header, string) {
	e.Helper()
	request, err := http.NewRequestWithContext(e.Context(), http.MethodPost, e.url+"/v1/projects/"+project+"/messages", strings.NewReader(body))
	if err != nil {
		e.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer token")
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		e.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		e.Fatal(err)
	}
	return response.StatusCode, response.Header, strings.TrimSpace(string(text))
}

func (e *entrance) count(sql string) (n int) {
	e.Helper()
	if err := e.pool.QueryRow(e.Context(), sql).Scan(&n); err != nil {
		e.Fatal(err)
	}
	return n
}

func TestMessagesAreAnsweredInOrder(t *testing.T) {
	t.Parallel()
	e := setup(t)
	status, _, got := e.post("clinic", `[{"id":"a","phone":"5531999990001","text":"1"},{"id":7,"phone":"553199990002","text":"2"},
		{"id":"a","phone":"5531999990001","text":"1"},{"id":"7","phone":"1","text":"x"},{"phone":"status@broadcast","text":"x"},{"id":"","phone":"1","text":"3"},
		{"id":"ç<","phone":"5531999990001","from_me":true,"text":"Oi, aqui é a recepção"}]`)
	want := `{"messages":[{"id":"a","status":"queued","reason":null},{"id":7,"status":"queued","reason":null},{"id":"a","status":"duplicate","reason":null},` +
		`{"id":"7","status":"duplicate","reason":null},{"id":null,"status":"ignored","reason":"broadcast"},{"id":"","status":"queued","reason":null},` +
		`{"id":"ç\u003c","status":"ignored","reason":"from_me"}]}`
	if status != 202 || got != want {
		t.Errorf("want 202\n%s, got %d\n%s", want, status, got)
	}
	if e.acked.Load() != 1 {
		t.Errorf("acknowledgements: want 1, got %d", e.acked.Load())
	}
}

func TestEmptyArray(t *testing.T) {
	t.Parallel()
	if status, _, got := setup(t).post("clinic", `[]`); status != 202 || got != `{"messages":[]}` {
		t.Errorf("got %d %s", status, got)
	}
}

func TestArrayIsStoredWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	e := setup(t)
	status, _, got := e.post("clinic", `[{"phone":"1","text":"um"},{"text":"sem telefone"}]`)
	if status != 422 || !strings.Contains(got, `"phone`) && !strings.Contains(got, "phone is missing") {
		t.Errorf("got %d %s", status, got)
	}
	if n := e.count(`SELECT count(*) FROM receipts`); n != 0 {
		t.Errorf("receipts: want none, got %d", n)
	}
}

func TestOddTextIsStored(t *testing.T) {
	t.Parallel()
	e := setup(t)
	status, _, got := e.post("clinic", `{"id":"n\u0000-1","phone":"5531999990001","text":"a\u0000b \ud83d 🦷`+"\xff"+`","metadata":{"k\u0000":["\u0000\udc00",1e15000],"\ud800":null}}`)
	if status != 202 {
		t.Fatalf("got %d %s", status, got)
	}
	var text, metadata string
	if err := e.pool.QueryRow(t.Context(), `SELECT mensagem, (metadata - 'k')::text FROM fila_mensagens WHERE id_mensagem = 'n-1'`).Scan(&text, &metadata); err != nil {
		t.Fatal(err)
	}
	if text != "ab \uFFFD 🦷\uFFFD" || metadata != `{"`+"\uFFFD"+`": null}` {
		t.Errorf("got %q %q", text, metadata)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	e := setup(t)
	tests := map[string]struct {
		project, body string
		status        int
	}{
		"another project":       {"nobody", `{}`, 403},
		"not in the database":   {"unprepared", `{"phone":"1","text":"x"}`, 503},
		"too long":              {"clinic", strings.Repeat(" ", entry.MaxBody+1), 413},
		"nested too deep":       {"clinic", `{"metadata":` + strings.Repeat("[", 40), 400},
		"nested as deep as may": {"clinic", `{"phone":"1","text":"x","metadata":{"a":` + strings.Repeat("[", 30) + strings.Repeat("]", 30) + `}}`, 202},
		"as long as may be":     {"clinic", `{"phone":"2","text":"` + strings.Repeat("y", entry.MaxBody-100) + `"}`, 202},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, header, got := e.post(tt.project, tt.body)
			if status != tt.status || (status == 503) != (header.Get("Retry-After") != "") {
				t.Errorf("want %d, got %d %v %.200s", tt.status, status, header, got)
			}
		})
	}
}

func TestUnknownProvider(t *testing.T) {
	t.Parallel()
	e := setup(t)
	response, err := http.Post(e.url+"/v1/projects/clinic/webhooks/nobody", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != 404 {
		t.Errorf("want 404, got %d", response.StatusCode)
	}
}

func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	e := setup(t)
	holder, err := e.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := holder.Exec(t.Context(), `LOCK TABLE receipts, conversations, fila_mensagens IN ACCESS EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	message := `{"id":"a","phone":"1","text":"x"}`
	status, header, got := e.post("clinic", message)
	if status != 503 || header.Get("Retry-After") == "" {
		t.Errorf("want 503 with Retry-After, got %d %v %s", status, header, got)
	}
	if err := holder.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if status, _, got := e.post("clinic", message); status != 202 || !strings.Contains(got, `"queued"`) {
		t.Errorf("repetition: want 202 queued, got %d %s", status, got)
	}
}

func TestNothingPersonalLeaks(t *testing.T) {
	t.Parallel()
	e := setup(t)
	const phone = "5531987654321"
	bodies := []string{
		`{"phone":"` + phone + `","text":"canario`, `{"phone":"` + phone + `","text":"canario"}}canario`, `{"phone":"` + phone + `","text":"canario","sent_at":"canario"}`,
		`{"phone":"` + phone + `","text":5,"contact_name":"canario"}`, `{"phone":"` + phone + `","kind":"canario","text":"canario"}`,
		`{"phone":"` + phone + `","text":"canario","canario":` + strings.Repeat("[", 40), `[{"phone":"` + phone + `","text":"canario","metadata":{"canario":1e400000}}]`,
		`{"phone":"` + strings.Repeat(phone, 30) + `","text":"canario"}`, `{"id":{"canario":1},"phone":"` + phone + `","text":"canario"}`,
	}
	for _, body := range bodies {
		status, _, got := e.post("clinic", body)
		if status != 400 && status != 422 {
			t.Errorf("%.60s: want a refusal, got %d", body, status)
		}
		var document map[string]any
		if err := json.Unmarshal([]byte(got), &document); err != nil {
			t.Errorf("not a document: %s", got)
		}
		if strings.Contains(got, "canario") || strings.Contains(got, phone) {
			t.Errorf("%.60s: the answer quotes it: %s", body, got)
		}
	}
	if _, _, got := e.post("unprepared", `{"id":"canario","phone":"`+phone+`","text":"canario"}`); strings.Contains(got, "canario") {
		t.Errorf("the answer quotes it: %s", got)
	}
	if log := e.log.String(); strings.Contains(log, "canario") || strings.Contains(log, phone) {
		t.Errorf("the log quotes it: %s", log)
	}
}
