package retention_test

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"fila/internal/retention"
)

// TestRoundAfterRound deletes what gets old while the loop runs, and ends with its context.
func TestRoundAfterRound(t *testing.T) {
	t.Parallel()
	c := setup(t)
	forgot := make(chan string, 10)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	f := retention.New(retention.Options{
		Pool: c.pool, Every: time.Millisecond, Forgot: func(class string, _ int64) { forgot <- class }, Log: zerolog.Nop(),
	})
	go func() { ended <- f.Run(ctx) }()
	for range 2 {
		c.answered("m", ana)
		c.pass(31)
		seen := map[string]bool{}
		for !seen["turns"] || !seen["receipts"] || !seen["conversations"] {
			select {
			case class := <-forgot:
				seen[class] = true
			case <-time.After(30 * time.Second):
				t.Fatalf("forgotten within half a minute: %v", seen)
			}
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestAPageEndsWithItsContext stops the loop in a page that waits for a lock.
func TestAPageEndsWithItsContext(t *testing.T) {
	t.Parallel()
	c := setup(t)
	c.answered("m", ana)
	c.pass(31)
	tx, err := c.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := tx.Exec(t.Context(), `LOCK TABLE deliveries`); err != nil {
		t.Fatal(err)
	}
	var log lines
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	f := retention.New(retention.Options{Pool: c.pool, Forgot: func(class string, _ int64) { t.Errorf("%s went", class) }, Log: zerolog.New(&log)})
	go func() { ended <- f.Run(ctx) }()
	c.await(`SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = 'deliveries'::regclass)`)
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	c.count("turns", 1)
	if log.text() != "" {
		t.Errorf("logged at the end: %s", log.text())
	}
}

// TestAPageThatFails is logged without what it held, ends neither the other classes nor another project's way, and is tried again.
func TestAPageThatFails(t *testing.T) {
	t.Parallel()
	c := setup(t)
	c.exec(`SELECT fila_open_project('other', 'BR', 0, 0, 100, ' ', 'queue', 3, 'advance', true, 3600, 'ignore', '', false)`)
	c.answered("m", ana)
	c.keep("other", 5)
	c.pass(31)
	c.exec(`
		CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no: %', OLD.phone; END $$;
		CREATE TRIGGER refuse BEFORE DELETE ON turns FOR EACH ROW WHEN (OLD.project = 'clinic') EXECUTE FUNCTION refuse()`)
	var log lines
	f := retention.New(retention.Options{Pool: c.pool, Forgot: func(class string, rows int64) { c.gone[class] += rows }, Log: zerolog.New(&log)})
	f.Round(t.Context())
	c.count("turns WHERE project = 'clinic'", 1)
	c.count("turns WHERE project = 'other'", 0)
	c.count("receipts WHERE status = 'queued'", 0)
	if !strings.Contains(log.text(), `"class":"turns"`) || !strings.Contains(log.text(), "not deleted") || strings.Contains(log.text(), ana) {
		t.Errorf("logged: %s", log.text())
	}
	c.exec(`DROP TRIGGER refuse ON turns`)
	f.Round(t.Context())
	c.count("turns", 0)
}

// await asks until the answer is true.
func (c *clinic) await(question string) {
	c.Helper()
	for until := time.Now().Add(30 * time.Second); time.Now().Before(until); {
		var yes bool
		if err := c.pool.QueryRow(c.Context(), question).Scan(&yes); err != nil {
			c.Fatal(err)
		} else if yes {
			return
		}
	}
	c.Fatalf("not within half a minute: %s", question)
}

// lines are what was logged, by whichever goroutine.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(line)
}

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}
