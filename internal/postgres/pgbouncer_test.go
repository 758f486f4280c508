package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"fila/internal/pgtest"
	"fila/internal/postgres"
	"fila/internal/queue"
	"fila/internal/turn"
)

func openProject(t *testing.T, pool *postgres.Pool, name string) {
	t.Helper()
	const open = `SELECT fila_open_project($1, 'BR', 0, 0, 100, ' ', 'queue', 3, 'advance', true, 3600, 'ignore', '', false)`
	if _, err := pool.Exec(t.Context(), open, name); err != nil {
		t.Fatal(err)
	}
}

func push(t *testing.T, pool *postgres.Pool, project, phone, text string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	q := queue.New(queue.Options{Pool: pool, Log: zerolog.Nop()})
	var ran sync.WaitGroup
	ran.Go(func() { _ = q.Run(ctx) })
	defer ran.Wait()
	defer cancel()
	if _, err := q.Push(t.Context(), []queue.Message{{Project: project, Phone: phone, Address: phone, Text: text, Kind: "text"}}); err != nil {
		t.Fatal(err)
	}
}

func TestThroughAPoolerInTransactionMode(t *testing.T) {
	t.Parallel()
	direct := pgtest.Empty(t)
	address := pgtest.Bouncer(t, direct, "transaction")
	for range 2 {
		if _, err := postgres.Migrate(t.Context(), address); err != nil {
			t.Fatal(err)
		}
	}
	if pending(t, address) {
		t.Error("something is missing after the migration")
	}
	pool := open(t, postgres.Options{URL: address, MaxConns: 8, Name: "fila"})
	openProject(t, pool, "clinic")

	q := queue.New(queue.Options{Pool: pool, Log: zerolog.Nop(), Writers: 4, Patience: time.Minute})
	ctx, cancel := context.WithCancel(t.Context())
	var all, ran sync.WaitGroup
	ran.Go(func() { _ = q.Run(ctx) })
	defer ran.Wait()
	defer cancel()
	store := turn.NewStore(pool, "instance-1", time.Minute)
	for worker := range 16 {
		all.Go(func() {
			for n := range 20 {
				if err := converse(t.Context(), q, store, fmt.Sprintf("55319%08d", worker*100+n)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if n := value[int](t, pool, "SELECT count(*)::integer FROM turns WHERE state = 'replied'"); n != 16*20 {
		t.Errorf("%d turns were answered", n)
	}
	if n := count(t, direct, "SELECT count(*) FROM fila_mensagens"); n != 0 {
		t.Errorf("%d messages wait", n)
	}
}

// converse takes one message through every statement of a turn.
func converse(ctx context.Context, q *queue.Queue, store *turn.Store, phone string) error {
	receipts, err := q.Push(ctx, []queue.Message{{Project: "clinic", ID: "wamid." + phone, Phone: phone, Address: phone, Text: "oi", Kind: "text"}})
	if err != nil || receipts[0].Status != queue.Queued {
		return fmt.Errorf("push: %v, %w", receipts, err)
	}
	var drained []turn.Drained
	for {
		if drained, err = store.Drain(ctx, "clinic", []string{phone}); err != nil {
			return fmt.Errorf("drain: %w", err)
		} else if len(drained) != 1 || drained[0].Verdict != turn.Busy {
			break
		}
	}
	if drained[0].Verdict != turn.Begun || drained[0].Work.Text != "oi" {
		return fmt.Errorf("drained %+v", drained)
	}
	claimed, err := store.Claim(ctx, "clinic", 1)
	if err != nil {
		return fmt.Errorf("claim: %w", err)
	}
	// Replies that are kept but not sent may be claimed again; that of this turn cannot be there yet.
	if slices.ContainsFunc(claimed, func(w turn.Work) bool { return w.ID == drained[0].Turn }) {
		return errors.New("a leased turn was claimed")
	}
	attempt := drained[0].Work.Attempt
	verdict, err := store.Reply(ctx, "clinic", drained[0].Turn, &attempt, turn.Reply{Text: "olá", Parts: []string{"olá"}})
	if err != nil || verdict != "held" {
		return fmt.Errorf("reply: %s, %w", verdict, err)
	}
	return nil
}
