package turn_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"fila/internal/agent"
	"fila/internal/call"
	"fila/internal/delivery"
	"fila/internal/pgtest"
	"fila/internal/postgres"
	"fila/internal/turn"
)

// clinic is one project on a database of its own, with an agent and a channel that each test writes itself. Bursts are due at
// once, and failures may be tried again after a millisecond.
type clinic struct {
	testing.TB
	pool    *postgres.Pool
	store   *turn.Store
	keeper  *turn.Keeper
	runner  *turn.Runner
	project *turn.Project
	// log is what the instance's runner writes, ended the states of the turns it has told the end of.
	log   bytes.Buffer
	ended []string

	mu     sync.Mutex
	asked  int
	sent   []string
	agent  http.HandlerFunc
	part   http.HandlerFunc
	become http.HandlerFunc
}

const lease = 100 * time.Second

func newClinic(t testing.TB) *clinic {
	t.Helper()
	pool, err := postgres.Open(t.Context(), postgres.Options{URL: pgtest.New(t), MaxConns: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	c := &clinic{TB: t, pool: pool, agent: says(200, `{"reply": "bom dia"}`), part: says(200, `{"id": "p"}`), become: says(202, "")}
	c.exec(`SELECT fila_open_project('clinic', 'BR', 0, 0, 100, ' ', 'queue', 3, 'advance', true, 3600, 'ignore', '', false)`)
	server := httptest.NewServer(http.HandlerFunc(c.serve))
	t.Cleanup(server.Close)
	c.connect(server.URL, server.URL)
	c.instance("one", lease)
	return c
}

// connect makes the project's clients.
func (c *clinic) connect(agentAddress, channelAddress string) {
	c.Helper()
	transport := call.NewTransport()
	c.Cleanup(transport.CloseIdleConnections)
	asked, err := agent.New(agent.Options{
		Call: call.Options{URL: agentAddress + "/agent", Timeout: patience, Transport: transport}, ReconcileURL: agentAddress + "/question",
	})
	if err != nil {
		c.Fatal(err)
	}
	channel, err := delivery.New(delivery.Options{
		Type: delivery.TypeHTTP, Call: call.Options{URL: channelAddress + "/part", Timeout: patience, Transport: transport},
		ReconcileURL: channelAddress + "/question",
	})
	if err != nil {
		c.Fatal(err)
	}
	c.project = &turn.Project{
		Name: "clinic", Agent: asked, AgentTimeout: patience, AgentUnknown: turn.Retry, Channel: channel, Sends: true,
		DeliveryUnknown: turn.Hold, PartMaxChars: 4096, Backoff: turn.Backoff{Attempts: 3, Min: time.Millisecond, Max: time.Millisecond},
	}
}

// instance starts another process on the same database.
func (c *clinic) instance(name string, lease time.Duration) {
	nothing := func(string, string, time.Duration) {}
	c.store = turn.NewStore(c.pool, name, lease)
	c.keeper = turn.NewKeeper(c.store, zerolog.Nop())
	c.runner = turn.NewRunner(c.store, c.keeper, turn.Observer{
		Late: func(string, time.Duration) {}, AgentCalled: nothing, DeliveryCalled: nothing,
		Ended: func(_, state string) { c.ended = append(c.ended, state) }, Retry: func(string, time.Duration) {},
	}, zerolog.New(&c.log))
}

func (c *clinic) serve(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	handler := c.become
	switch r.URL.Path {
	case "/agent":
		c.asked++
		handler = c.agent
	case "/part":
		c.sent = append(c.sent, r.Header.Get("Idempotency-Key"))
		handler = c.part
	}
	c.mu.Unlock()
	handler(w, r)
}

// calls tells how often the agent was asked, and which parts were sent, each try once.
func (c *clinic) calls() (asked int, sent []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked, append([]string(nil), c.sent...)
}

// says answers every request alike.
func says(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

// hangsUp takes the request and breaks the connection.
func hangsUp(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// first answers the first request in one way and all later ones in another.
func first(one, others http.HandlerFunc) http.HandlerFunc {
	var once sync.Once
	return func(w http.ResponseWriter, r *http.Request) {
		handler := others
		once.Do(func() { handler = one })
		handler(w, r)
	}
}

func (c *clinic) exec(sql string, args ...any) {
	c.Helper()
	if _, err := c.pool.Exec(c.Context(), sql, args...); err != nil {
		c.Fatalf("%s: %v", sql, err)
	}
}

// value is the one value that the statement gives, as text.
func (c *clinic) value(sql string, args ...any) (text string) {
	c.Helper()
	if err := c.pool.QueryRow(c.Context(), "SELECT coalesce(("+sql+")::text, '')", args...).Scan(&text); err != nil {
		c.Fatalf("%s: %v", sql, err)
	}
	return text
}

func (c *clinic) want(what, got, want string) {
	c.Helper()
	if got != want {
		c.Errorf("%s: %q, want %q", what, got, want)
	}
}

// begin makes a turn of one message and leaves it to the caller.
func (c *clinic) begin() turn.Work {
	c.Helper()
	c.push("m1")
	drained, err := c.store.Drain(c.Context(), "clinic", phones[:1])
	if err != nil || len(drained) != 1 || drained[0].Verdict != turn.Begun {
		c.Fatalf("drain: %v, error %v", drained, err)
	}
	return drained[0].Work
}

func (c *clinic) push(id string) {
	c.Helper()
	c.exec(`SELECT fila_push(ARRAY['clinic'], ARRAY[$2], ARRAY[$1], ARRAY[$1], ARRAY['oi'], ARRAY['text'], ARRAY[NULL], ARRAY[NULL], ARRAY[NULL],
		ARRAY[NULL]::timestamptz[], ARRAY[NULL], ARRAY[NULL])`, phones[0], id)
}

func (c *clinic) run(w turn.Work) { c.runner.Run(c.Context(), c.project, w, time.Now()) }

// claim waits for the one turn that may go on.
func (c *clinic) claim() (w turn.Work) {
	c.Helper()
	c.eventually("a turn may go on", func() bool {
		claimed, err := c.store.Claim(c.Context(), "clinic", 1)
		if err != nil {
			c.Fatal(err)
		}
		if len(claimed) > 0 {
			w = claimed[0]
		}
		return len(claimed) > 0
	})
	return w
}

func (c *clinic) eventually(what string, so func() bool) {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), patience)
	defer cancel()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for !so() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			c.Fatalf("it does not come to this: %s", what)
		}
	}
}

func (c *clinic) state() string { return c.value(`SELECT state FROM turns`) }

func (c *clinic) parts() string {
	return c.value(`SELECT string_agg(part || ' ' || state, ', ' ORDER BY part) FROM deliveries`)
}
