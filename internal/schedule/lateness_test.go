package schedule_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"fila/internal/agent"
	"fila/internal/call"
	"fila/internal/delivery"
	"fila/internal/pgtest"
	"fila/internal/postgres"
	"fila/internal/queue"
	"fila/internal/schedule"
	"fila/internal/turn"
)

// BenchmarkLatenessAtRest is one patient on an idle machine, from the message to the agent, with a Postgres whose commits
// reach the disk: how long after its due time the call of a turn begins.
func BenchmarkLatenessAtRest(b *testing.B) {
	const turns, window = 200, 50 * time.Millisecond
	var late []time.Duration
	clinic := start(b, window, func(d time.Duration) { late = append(late, d) })
	for b.Loop() {
		for n := range turns {
			clinic.converse(strconv.Itoa(n))
		}
		clinic.round++
	}
	slices.Sort(late)
	milliseconds := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	b.ReportMetric(milliseconds(late[len(late)/2]), "p50-ms")
	b.ReportMetric(milliseconds(late[len(late)*99/100]), "p99-ms")
	b.ReportMetric(milliseconds(late[len(late)-1]), "max-ms")
}

// clinic is the path of a message from the queue to the agent.
type clinic struct {
	b     *testing.B
	queue *queue.Queue
	ended chan string
	round int
}

func start(b *testing.B, window time.Duration, late func(time.Duration)) *clinic {
	pool := database(b, window)
	c := &clinic{b: b, ended: make(chan string)}
	store := turn.NewStore(pool, "instance-1", 15*time.Second)
	keeper := turn.NewKeeper(store, zerolog.Nop())
	runner := turn.NewRunner(store, keeper, turn.Observer{
		Late:        func(_ string, d time.Duration) { late(d) },
		AgentCalled: func(string, string, time.Duration) {}, DeliveryCalled: func(string, string, time.Duration) {},
		Ended: func(_, state string) { c.ended <- state }, Retry: func(string, time.Duration) {},
	}, zerolog.Nop())
	scheduler := schedule.New(schedule.Options{
		Store: store, Run: runner.Run, Interrupt: keeper.Interrupt, Sweep: time.Second, Log: zerolog.Nop(),
	})
	scheduler.Configure([]schedule.Project{{
		Name: "sul", Window: schedule.Window{Debounce: window, MaxWait: 5 * window, MaxMessages: 100}, Concurrency: 50, Turn: answering(b),
	}})
	c.queue = queue.New(queue.Options{Pool: pool, Log: zerolog.Nop(), Stored: func(m queue.Message, _ queue.Receipt) {
		scheduler.Arrived(m.Project, m.Phone)
	}})
	ctx, cancel := context.WithCancel(b.Context())
	var running sync.WaitGroup
	for _, run := range []func(context.Context) error{
		keeper.Run, c.queue.Run, func(ctx context.Context) error { return scheduler.Run(ctx, b.Context()) },
	} {
		running.Go(func() {
			if err := run(ctx); err != nil {
				b.Error(err)
			}
		})
	}
	b.Cleanup(func() { cancel(); running.Wait() })
	return c
}

func database(b *testing.B, window time.Duration) *postgres.Pool {
	url := pgtest.Server(b, nil).URL("postgres")
	if _, err := postgres.Migrate(b.Context(), url); err != nil {
		b.Fatal(err)
	}
	pool, err := postgres.Open(b.Context(), postgres.Options{URL: url, MaxConns: 8})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	const open = `SELECT fila_open_project('sul', 'BR', $1, 5 * $1::double precision, 100, ' ', 'queue', 3, 'advance', true, 3600, 'ignore', '', false)`
	if _, err := pool.Exec(b.Context(), open, window.Seconds()); err != nil {
		b.Fatal(err)
	}
	return pool
}

// answering asks an agent that has nothing to say.
func answering(b *testing.B) *turn.Project {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusNoContent)
	}))
	b.Cleanup(server.Close)
	client, err := agent.New(agent.Options{Call: call.Options{URL: server.URL, Timeout: time.Minute}})
	if err != nil {
		b.Fatal(err)
	}
	channel, err := delivery.New(delivery.Options{Type: delivery.TypeNone})
	if err != nil {
		b.Fatal(err)
	}
	return &turn.Project{
		Name: "sul", Agent: client, AgentTimeout: time.Minute, AgentUnknown: turn.Retry, Channel: channel, DeliveryUnknown: turn.Hold,
		PartMaxChars: 4096, Backoff: turn.Backoff{Attempts: 3, Min: time.Second, Max: time.Minute},
	}
}

// converse sends a message and waits until its turn is over.
func (c *clinic) converse(id string) {
	message := queue.Message{
		Project: "sul", ID: strconv.Itoa(c.round) + "." + id, Phone: "5531999990001", Address: "5531999990001", Text: "oi", Kind: "text",
	}
	if _, err := c.queue.Push(c.b.Context(), []queue.Message{message}); err != nil {
		c.b.Fatal(err)
	}
	if state := <-c.ended; state != "done" {
		c.b.Fatalf("the turn ended %s", state)
	}
}
