package queue

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"fila/internal/pgtest"
	"fila/internal/postgres"
)

func TestMain(m *testing.M) {
	// The server of this test program ends with it.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("fila/internal/postgres/cluster.(*Cluster).supervise"))
}

// clinic is a queue on a database with two projects.
type clinic struct {
	testing.TB
	*Queue
	url  string
	pool *postgres.Pool
	// finish ends Run and waits for it.
	finish func()
}

// prepare makes a queue that nobody runs yet: what is pushed gathers.
func prepare(t testing.TB, url string, o Options) *clinic {
	t.Helper()
	c := &clinic{TB: t, url: url, pool: open(t, url)}
	for _, project := range []string{"norte", "sul"} {
		const open = `SELECT fila_open_project($1, 'BR', 10, 50, 100, ' ', 'queue', 3, 'advance', true, 3600, 'ignore', '', false)`
		if _, err := c.pool.Exec(t.Context(), open, project); err != nil {
			t.Fatal(err)
		}
	}
	o.Pool, o.Log = c.pool, zerolog.New(zerolog.NewTestWriter(t))
	c.Queue = New(o)
	return c
}

func open(t testing.TB, url string) *postgres.Pool {
	t.Helper()
	pool, err := postgres.Open(t.Context(), postgres.Options{URL: url, MaxConns: 6})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func (c *clinic) start() *clinic {
	ctx, cancel := context.WithCancel(c.Context())
	var ran sync.WaitGroup
	ran.Go(func() { _ = c.Run(ctx) })
	c.finish = func() { cancel(); ran.Wait() }
	c.Cleanup(c.finish)
	return c
}

func setup(t testing.TB, o Options) *clinic {
	t.Helper()
	return prepare(t, pgtest.New(t), o).start()
}

func (c *clinic) exec(sql string, args ...any) {
	c.Helper()
	if _, err := c.pool.Exec(c.Context(), sql, args...); err != nil {
		c.Fatalf("%s: %v", sql, err)
	}
}

func value[T any](c *clinic, sql string, args ...any) (v T) {
	c.Helper()
	if err := c.pool.QueryRow(c.Context(), sql, args...).Scan(&v); err != nil {
		c.Fatalf("%s: %v", sql, err)
	}
	return v
}

// stored counts everything that a push leaves behind.
func (c *clinic) stored() int {
	c.Helper()
	return value[int](c, "SELECT ((SELECT count(*) FROM fila_mensagens) + (SELECT count(*) FROM receipts) + (SELECT count(*) FROM conversations))::integer")
}

func (c *clinic) waiting(project string) []string {
	c.Helper()
	return value[[]string](c, "SELECT coalesce(array_agg(mensagem ORDER BY id), '{}') FROM fila_mensagens WHERE projeto = $1", project)
}

// push must succeed, and returns the statuses.
func (c *clinic) push(messages ...Message) []string {
	c.Helper()
	receipts, err := c.Push(c.Context(), messages)
	if err != nil {
		c.Fatal(err)
	}
	said := make([]string, len(receipts))
	for i, r := range receipts {
		said[i] = strings.TrimSpace(r.Status + " " + r.Reason)
	}
	return said
}

func (c *clinic) want(got []string, want ...string) {
	c.Helper()
	if !slices.Equal(got, want) {
		c.Errorf("got %q, want %q", got, want)
	}
}

// hold keeps what the statement locks until the returned function is called.
func (c *clinic) hold(sql string, args ...any) (letGo func()) {
	c.Helper()
	tx, err := c.pool.Begin(c.Context())
	if err != nil {
		c.Fatal(err)
	}
	letGo = sync.OnceFunc(func() { _ = tx.Rollback(context.Background()) })
	c.Cleanup(letGo)
	if _, err := tx.Exec(c.Context(), sql, args...); err != nil {
		c.Fatal(err)
	}
	return letGo
}

// gather pushes each request on its own, waits until all of them are in line, and returns where their answers will come.
func (c *clinic) gather(requests ...[]Message) []*answered {
	c.Helper()
	all := make([]*answered, len(requests))
	messages := c.inLine()
	for i, r := range requests {
		a := &answered{done: make(chan struct{})}
		all[i] = a
		go func() {
			defer close(a.done)
			a.receipts, a.err = c.Push(c.Context(), r)
		}()
		messages += len(r)
		await(c, "a request does not get in line", func() bool { return c.inLine() == messages })
	}
	return all
}

func (c *clinic) inLine() (n int) {
	for _, w := range c.writers {
		w.lines.mu.Lock()
		for _, waiting := range w.lines.waiting {
			n += waiting
		}
		w.lines.mu.Unlock()
	}
	return n
}

// answered is the outcome of one Push.
type answered struct {
	done     chan struct{}
	receipts []Receipt
	err      error
}

func (a *answered) wait() ([]Receipt, error) {
	<-a.done
	return a.receipts, a.err
}

// await asks again and again until done says yes.
func await(t testing.TB, otherwise string, done func() bool) {
	t.Helper()
	limit := time.After(30 * time.Second)
	for !done() {
		select {
		case <-time.After(time.Millisecond):
		case <-limit:
			t.Fatal(otherwise)
		}
	}
}

// says is a message of the nth patient of the project.
func says(project string, patient int, id, text string) Message {
	phone := fmt.Sprintf("55319%08d", patient)
	return Message{Project: project, ID: id, Phone: phone, Address: "+" + phone, Text: text, Kind: "text"}
}
